"""`argus-sched events` over every handed log: exactly the runs that stand there, and the other events."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argus_sched.cli import main

LOGS = Path(__file__).parents[2] / "field" / "logs"
NAMES = sorted(path.stem for path in LOGS.glob("*.log"))

# The handed cases have words of their own for these events.
OUR_WORDS = {
    "success": "succeeded",
    "error": "failed",
    "max_instances": "skipped",
    "lookup_failed": "executor_lost",
    "scheduler_shutdown": "scheduler_stopped",
}
# What is known of a log beyond the handed answer's `other`: quotations, wrapped and foreign lines.
ALSO_TOLD = {
    "07_json_lines": [(8, "unreadable")],
    "11_rich_wrapped": [(1, "unreadable")],
    "12_other_versions": [(1, "unsupported"), (2, "unsupported"), (3, "unsupported"), (4, "unsupported")],
    "19_name_newline": [(6, "unreadable"), (9, "unreadable")],
}
RUN_KEYS = (
    "line",
    "logged_at",
    "name",
    "trigger",
    "status",
    "next_run",
    "next_run_utc",
    "scheduled_at",
    "scheduled_at_utc",
)


def events(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["events", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def expected(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((LOGS / f"{name}.expect.json").read_text())
    return answer


def as_json_file(path: Path) -> bytes:
    """The same records as the daemon's json-file would hold them, pieces of long lines apart."""
    from argus_sched.agent.reading.stamps import parse_stamp

    rows = []
    for line in path.read_bytes().split(b"\n"):
        stamp = parse_stamp(line)
        if stamp is None:
            continue
        head = line[: stamp[1] + 1]
        pieces = line[len(head) :].split(head)
        for index, piece in enumerate(pieces):
            text = piece.decode("utf-8", "replace") + ("\n" if index == len(pieces) - 1 else "")
            rows.append({"log": text, "stream": "stderr", "time": head.decode().strip()})
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_exactly_the_runs_of_a_log_are_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = expected(name)
    undecidable = answer.get("undecidable_lines", [])
    found = [
        {key: event[key] for key in RUN_KEYS}
        for event in events(capsys, "--file", str(LOGS / f"{name}.log"))
        if event["event"] == "running" and event["line"] not in undecidable
    ]
    assert found == [{key: run[key] for key in RUN_KEYS} for run in answer["running"]]


@pytest.mark.parametrize("name", NAMES)
def test_exactly_the_other_events_of_a_log_are_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        event for event in events(capsys, "--file", str(LOGS / f"{name}.log")) if event["event"] != "running"
    ]
    wanted = [
        {**other, "event": OUR_WORDS.get(other["event"], other["event"])} for other in expected(name)["other"]
    ]
    told = [(other["line"], other["event"]) for other in wanted] + ALSO_TOLD.get(name, [])
    assert [(event["line"], event["event"]) for event in found] == sorted(told)
    by_line = {event["line"]: event for event in found}
    for other in wanted:
        assert {key: by_line[other["line"]][key] for key in other if key != "logged_at_ns"} == {
            key: value for key, value in other.items() if key != "logged_at_ns"
        }


# The merged capture has no json-file form: there the two streams are apart.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "38_interleaved_chunks"])
def test_the_json_file_of_a_log_holds_the_same_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c-json.log"
    path.write_bytes(as_json_file(LOGS / f"{name}.log"))
    found = events(capsys, "--file", str(path), "--format", "json-file")
    runs = [(event["logged_at"], event["name"]) for event in found if event["event"] == "running"]
    assert runs == [(run["logged_at"], run["name"]) for run in expected(name)["running"]]


def test_the_program_prints_utf_8_whatever_the_locale() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "argus_sched", "events", "--file", "-"],
        input=(LOGS / "07_json_lines.log").read_bytes(),
        capture_output=True,
        check=True,
        env={"LC_ALL": "en_US.ISO-8859-1", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        timeout=120,
    )
    names = [json.loads(line)["name"] for line in result.stdout.decode("utf-8").splitlines()]
    assert 'sync "orders" (EU) \u2192 dwh' in names


def test_a_missing_file_is_one_sentence_and_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--file", "/nowhere/app.log"]) == 3
    assert capsys.readouterr().err == (
        "argus-sched: cannot read the log /nowhere/app.log: No such file or directory\n"
    )


def test_a_text_without_times_is_not_passed_over_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "app.log"
    path.write_text('INFO:apscheduler.executors.default:Running job "tick (trigger: interval[0:00:05])"\n')
    assert main(["events", "--file", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no line of a scheduler was found: is this the text of `docker logs -t`" in printed.err


def test_a_pack_names_the_logs_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "web.log"
    log.write_bytes((LOGS / "24_streams_stderr.log").read_bytes())
    pack = tmp_path / "labs.yaml"
    pack.write_text(
        f"app: labs\nlogs:\n  file: {{path: {log}, format: docker}}\n  window: 3660d\n"
        "checks:\n  - kind: scheduler_jobs\n    jobs:\n      - {id: tick, name: tick, every: 5s}\n"
    )
    found = events(capsys, "--pack", str(pack))
    assert [(event["name"], event["container"]) for event in found] == [("tick", str(log))] * 2
