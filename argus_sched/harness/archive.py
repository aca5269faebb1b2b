"""What a run leaves in the folder of its report, and how it is found again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from argus_sched.errors import SettingsError
from argus_sched.harness.history import to_line
from argus_sched.harness.report import Record, page
from argus_sched.harness.settings import RunSettings

PAGE, VERDICT, HISTORY = "report.html", "report.json", "history.jsonl"


def keep(record: Record, folder: Path, logs: Path | None = None) -> Path:
    """Write page, verdict, history and the workers' logs into `folder`; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(page(record))
    answer = {
        **record.verdict.as_json(),
        "run": record.settings.as_json(),
        "command": record.settings.command,
    }
    (folder / VERDICT).write_text(json.dumps(answer, indent=2) + "\n")
    with (folder / HISTORY).open("w") as history:
        history.writelines(to_line(event) for event in record.history.events)
    if logs is not None:
        shutil.copytree(logs, folder / "logs", dirs_exist_ok=True)
    return folder / PAGE


def settings_of(report: Path, dsn: str | None) -> RunSettings:
    """The settings of an earlier run, from its report's folder or a file in it; SettingsError without any."""
    path = report / VERDICT if report.is_dir() else report.with_name(VERDICT)
    try:
        fields: dict[str, Any] = json.loads(path.read_text())["run"]
        embedded = bool(fields["embedded"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{path} is no report of a run: name a folder that run --report wrote") from error
    if not embedded and dsn is None:
        raise SettingsError("that run used a database of yours: name it again with --dsn")
    return RunSettings.from_json(fields, dsn)
