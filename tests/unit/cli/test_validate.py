"""`argus-sched validate`: what it prints, what it exits with, and that it touches nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus_sched.agent.config import settings as settings_module
from argus_sched.cli import main

ROOT = Path(__file__).parents[3]
GOOD = """\
app: {app}
logs: {{docker: {{container: x}}}}
checks:
  - {{kind: scheduler_jobs, jobs: [{{id: a, name: A, every: {every}}}]}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no config of the system."""
    monkeypatch.setattr(settings_module, "SYSTEM_CONFIG", str(tmp_path / "none.yaml"))
    monkeypatch.setattr(settings_module, "SYSTEM_PACKS", str(tmp_path / "none" / "*.yaml"))
    monkeypatch.delenv("ARGUS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, app: str = "labs", every: str = "15m") -> None:
    Path(path).write_text(GOOD.format(app=app, every=every))


def test_a_good_pack_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(ROOT / "checks/labs.yaml")]) == 0
    assert capsys.readouterr().out == f"{ROOT}/checks/labs.yaml: ok (22 jobs, 1 lock)\n"


def test_a_wrong_pack_is_a_line_for_each_problem_and_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yaml", every="0s")
    write("b.yaml", app="other")
    assert main(["validate", "a.yaml", "b.yaml"]) == 3
    assert capsys.readouterr().out.splitlines() == [
        "a.yaml:4: checks[0].jobs[0].every: a duration must be above zero, got '0s'",
        "b.yaml: ok (1 job, 0 locks)",
    ]


def test_a_warning_is_printed_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yaml", every="1d")
    assert main(["validate", "a.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a.yaml: ok (1 job, 0 locks)",
        "a.yaml:4: checks[0].jobs[0]: logs.window 26h is shorter than the limit of a: make it 2d (warning)",
    ]


def test_two_packs_for_one_application_are_told_at_the_second(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yaml")
    write("b.yaml")
    assert main(["validate", "a.yaml", "b.yaml", "a.yaml"]) == 3
    assert capsys.readouterr().out.splitlines() == [
        "a.yaml: ok (1 job, 0 locks)",
        "b.yaml:1: app: the application 'labs' has a pack already: a.yaml",
    ]


def test_a_config_is_judged_with_the_packs_it_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yaml")
    Path("argus.yaml").write_text("packs: [a.yaml]\n")
    assert main(["validate", "--config", "argus.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == ["argus.yaml: ok", f"{folder}/a.yaml: ok (1 job, 0 locks)"]


def test_a_wrong_config_is_told_before_any_pack(capsys: pytest.CaptureFixture[str]) -> None:
    Path("argus.yaml").write_text("every: 1\npack: []\n")
    assert main(["validate", "--config", "argus.yaml", "gone.yaml"]) == 3
    assert capsys.readouterr().out.splitlines() == [
        "argus.yaml:1: every: expected a duration such as 90s, 15m, 26h or 1d, got the number 1",
        "argus.yaml:2: pack: unknown key, did you mean 'packs'?",
    ]


def test_a_token_that_is_not_there_is_told_before_the_first_alert(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.yaml")
    Path("argus.yaml").write_text("packs: [a.yaml]\ntelegram: {token_env: BOT_TOKEN, chat_id: 5}\n")
    monkeypatch.delenv("BOT_TOKEN", raising=False)
    assert main(["validate", "--config", "argus.yaml"]) == 3
    assert capsys.readouterr().out.splitlines() == [
        "argus.yaml:2: telegram: the variable BOT_TOKEN is not set: it must hold the token of the Telegram bot",
        f"{folder}/a.yaml: ok (1 job, 0 locks)",
    ]
    monkeypatch.setenv("BOT_TOKEN", "123456:x")
    assert main(["validate", "--config", "argus.yaml"]) == 0


def test_a_dsn_that_is_not_there_is_a_warning_where_the_pack_is_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.yaml").write_text(
        "app: labs\ndatabase: {dsn_env: LABS_DSN}\nchecks: [{kind: scheduler_lock, key: 5}]\n"
    )
    Path("argus.yaml").write_text("packs: [a.yaml]\n")
    monkeypatch.delenv("LABS_DSN", raising=False)
    assert main(["validate", "--config", "argus.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "argus.yaml: ok",
        f"{folder}/a.yaml: ok (0 jobs, 1 lock)",
        f"{folder}/a.yaml:1: database: the variable LABS_DSN is not set: it must hold a Postgres DSN (warning)",
    ]
    assert main(["validate", "a.yaml"]) == 0
    assert "warning" not in capsys.readouterr().out


def test_nothing_to_check_is_not_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 3
    assert "no check pack matches" in capsys.readouterr().err


def test_json_has_the_same_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yaml", every="1d")
    write("b.yaml", app="other", every="5")
    assert main(["validate", "a.yaml", "b.yaml", "--output", "json"]) == 3
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "files": [
            {
                "file": "a.yaml",
                "ok": True,
                "jobs": 1,
                "locks": 0,
                "problems": [],
                "warnings": [
                    {
                        "line": 4,
                        "path": "checks[0].jobs[0]",
                        "message": "logs.window 26h is shorter than the limit of a: make it 2d",
                    }
                ],
            },
            {
                "file": "b.yaml",
                "ok": False,
                "jobs": None,
                "locks": None,
                "problems": [
                    {
                        "line": 4,
                        "path": "checks[0].jobs[0].every",
                        "message": "expected a duration such as 90s, 15m, 26h or 1d, got the number 5",
                    }
                ],
                "warnings": [],
            },
        ],
    }


def test_nothing_is_written(folder: Path) -> None:
    write("a.yaml")
    Path("argus.yaml").write_text("packs: [a.yaml]\nstate: state.db\ntextfile: argus.prom\n")
    main(["validate", "--config", "argus.yaml"])
    assert sorted(path.name for path in folder.iterdir()) == ["a.yaml", "argus.yaml"]
