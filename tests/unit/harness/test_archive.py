"""The folder of a report: found wanting before the run, and never taken from its owner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus_sched.errors import SettingsError, SourceError
from argus_sched.harness.archive import keep, keep_logs, place, settings_of
from tests.unit.harness.sample_run import record


@pytest.mark.parametrize("name", ["file", "file/below", "/proc/nowhere"])
def test_a_place_that_takes_no_report_is_told_at_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="the report cannot be written"), place(tmp_path / name, ""):
        raise AssertionError("the run began")


@pytest.mark.parametrize("existed", [True, False])
def test_a_run_that_fails_takes_only_the_folder_that_was_made_for_it(existed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    if existed:
        folder.mkdir()
        (folder / "own").touch()
    with pytest.raises(KeyboardInterrupt), place(folder, ""):
        raise KeyboardInterrupt
    assert folder.exists() is existed
    assert (folder / "own").exists() is existed


def test_what_was_kept_of_a_run_that_could_not_be_judged_stays(tmp_path: Path) -> None:
    def failing() -> None:
        with place(tmp_path / "report", "") as folder:
            (folder / "logs").mkdir()
            raise SourceError("the cluster never came up")

    with pytest.raises(SourceError):
        failing()
    assert (tmp_path / "report" / "logs").exists()


def test_without_a_name_it_is_a_new_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with place(None, "report-") as folder:
        assert folder.parent == tmp_path
        (folder / "report.html").touch()
    assert folder.exists()


def test_an_empty_one_that_was_made_for_it_does_not_stay(tmp_path: Path) -> None:
    with place(tmp_path / "report", "") as folder:
        pass
    assert not folder.exists()


def test_the_logs_of_an_earlier_report_are_not_mixed_with_its_own(tmp_path: Path) -> None:
    for run, slots in (("first", ("w1", "w2")), ("second", ("w1",))):
        (tmp_path / run).mkdir()
        for slot in slots:
            (tmp_path / run / f"{slot}-json.log").write_text(run)
        keep(record(), tmp_path / "report", tmp_path / run)
    logs = {path.name: path.read_text() for path in (tmp_path / "report" / "logs").iterdir()}
    assert logs == {"w1-json.log": "second"}


def test_a_disk_that_takes_no_report_is_told(tmp_path: Path) -> None:
    (tmp_path / "report.json").symlink_to("/dev/full")
    with pytest.raises(SourceError, match=r"the report could not be written to .*: .*No space left"):
        keep(record(), tmp_path)


RUN = {"embedded": True, "faults": ["kill"], "without": [], "workers": 2, "jobs": 3, "duration": 1, "seed": 4}


def report_of(run: object, folder: Path) -> Path:
    (folder / "report.json").write_text(json.dumps({"run": run}))
    return folder


def test_the_settings_of_a_report_are_found_again(tmp_path: Path) -> None:
    settings = settings_of(report_of(RUN, tmp_path), None)
    assert (settings.faults, settings.workers, settings.duration) == (("kill",), 2, 1.0)


@pytest.mark.parametrize(
    "run",
    [
        None,
        [],
        {},
        {"embedded": True},
        RUN | {"faults": None},
        RUN | {"workers": "3"},
        RUN | {"duration": "long"},
        RUN | {"colour": 1},
        RUN | {"profile": 7},
        {name: value for name, value in RUN.items() if name != "embedded"},
    ],
)
def test_what_is_no_report_is_told_in_one_sentence(run: object, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is no report of a run that can be repeated"):
        settings_of(report_of(run, tmp_path), None)


def test_a_run_on_a_database_of_yours_needs_its_name_again(tmp_path: Path) -> None:
    folder = report_of(RUN | {"embedded": False}, tmp_path)
    with pytest.raises(SettingsError, match="name it again with --dsn"):
        settings_of(folder, None)
    assert settings_of(folder, "postgresql://h/d").dsn == "postgresql://h/d"


def test_the_logs_of_a_run_that_failed_are_kept_beside_its_report(tmp_path: Path) -> None:
    logs = tmp_path / "run" / "logs"
    assert keep_logs(logs, tmp_path / "report") is None
    logs.mkdir(parents=True)
    (logs / "w1-json.log").write_text("{}\n")
    kept = keep_logs(logs, tmp_path / "report")
    assert kept == tmp_path / "report-failed"
    assert (kept / "w1-json.log").read_text() == "{}\n"
