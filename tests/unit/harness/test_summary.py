"""The verdict on a terminal, and the command that repeats a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_sched.errors import SettingsError
from argus_sched.harness import archive, summary
from argus_sched.harness.settings import RunSettings, WorkerSettings, plans
from tests.unit.harness.sample_run import record


def test_a_held_run_reads_in_one_sentence_and_a_table() -> None:
    text = summary.text(record())
    assert text.startswith(
        "HELD: 320 due times, 0 lost, 0 run twice, 0 interrupted by a kill; at most 1 holder"
    )
    assert "freeze          1   5.0 ms / 5.0 ms / 5.0 ms  2.90 s / 2.90 s / 2.90 s" in text
    assert text.endswith("--seed 4711 --profile default --coordination leader")


def test_a_violated_run_names_job_due_time_and_events() -> None:
    text = summary.text(record(doubled=True))
    assert text.startswith("VIOLATED: 320 due times, 0 lost, 1 run twice")
    assert "violated  doubled: job_0 due 2027-01-15T08:00:08.000Z ran twice" in text
    assert '{"event":"started"' in text


def test_what_was_kept_can_be_run_again(tmp_path: Path) -> None:
    kept = record()
    page = archive.keep(kept, tmp_path / "report")
    for named in (page, page.parent, page.with_name("report.json")):
        assert archive.settings_of(named, None) == kept.settings


def test_a_run_on_a_named_database_needs_its_name_again(tmp_path: Path) -> None:
    settings = RunSettings(dsn="postgresql://me:secret@db/x")
    assert "secret" not in settings.command + str(settings.as_json())
    assert RunSettings.from_json(settings.as_json(), "dsn2").dsn == "dsn2"


@pytest.mark.parametrize("text", [None, "{}", "[]", '{"run": {}}'])
def test_a_folder_without_a_report_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    with pytest.raises(SettingsError, match="is no report of a run"):
        archive.settings_of(tmp_path, None)


def test_worker_settings_survive_their_file(tmp_path: Path) -> None:
    told = WorkerSettings("ns", -5, "fast", plans(10), ("claims", "tick"), "redis", "redis://x")
    told.write(tmp_path)
    assert WorkerSettings.read(tmp_path) == told


@pytest.mark.parametrize("wrong", [{"without": ("gravity",)}, {"coordination": "chaos"}])
def test_unknown_words_in_worker_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="there is no"):
        WorkerSettings("ns", 1, "fast", (), **wrong)  # type: ignore[arg-type]  # that is the test


def test_the_jobs_of_a_run_differ_in_what_they_ask_of_the_scheduler() -> None:
    chosen = plans(20)
    assert len({plan.job for plan in chosen}) == 20
    assert sum(plan.at_least_once for plan in chosen) == 2
    assert sum(bool(plan.jitter_ms) for plan in chosen) == 2
