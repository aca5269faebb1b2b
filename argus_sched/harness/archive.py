"""What a run leaves in the folder of its report, and how it is found again."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from argus_sched.errors import ArgusError, SettingsError, SourceError
from argus_sched.harness.aftermath import afterwards
from argus_sched.harness.history import to_line
from argus_sched.harness.report import Record, page
from argus_sched.harness.settings import RunSettings

PAGE, VERDICT, HISTORY = "report.html", "report.json", "history.jsonl"


@contextlib.contextmanager
def place(named: Path | None, prefix: str) -> Iterator[Path]:
    """The folder for a report: the one that was named, or a new temporary one.

    One that was made here is removed again when the block is interrupted or leaves it empty. Raises
    SettingsError for one that cannot be written to, before anything else is done.
    """
    made = named is None or not named.exists()
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix)) if named is None else named
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise SettingsError(
            f"the report cannot be written, name another folder with --report: {error}"
        ) from error
    with afterwards("rmdir", str(folder)) if made else contextlib.nullcontext():
        try:
            yield folder
        except ArgusError:
            raise  # the logs that were kept say why
        except BaseException:
            if made:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def keep(record: Record, folder: Path, logs: Path | None = None) -> Path:
    """Write page, verdict, history and the workers' logs into `folder`; returns the page's path.

    What an earlier report left there is replaced. Raises SourceError when the disk does not take it.
    """
    try:
        _write(record, folder, logs)
    except OSError as error:
        raise SourceError(f"the report could not be written to {folder}: {error}") from error
    return folder / PAGE


def keep_logs(logs: Path, folder: Path) -> Path | None:
    """Copy the workers' logs of a run that came to no report beside `folder`.

    Returns where they are now, None where no worker was started.
    """
    if not logs.is_dir():
        return None
    aside = folder.with_name(f"{folder.name}-failed")
    shutil.copytree(logs, aside, dirs_exist_ok=True)
    return aside


def _write(record: Record, folder: Path, logs: Path | None) -> None:
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
        for earlier in (folder / "logs").glob("*-json.log"):
            earlier.unlink()
        shutil.copytree(logs, folder / "logs", dirs_exist_ok=True)


def settings_of(report: Path, dsn: str | None) -> RunSettings:
    """The settings of an earlier run, from its report's folder or a file in it; SettingsError without any."""
    path = report / VERDICT if report.is_dir() else report.with_name(VERDICT)
    try:
        fields: dict[str, Any] = json.loads(path.read_text())["run"]
        embedded, settings = fields["embedded"], RunSettings.from_json(fields, dsn)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} is no report of a run that can be repeated: name a folder that run --report wrote"
        ) from error
    if not embedded and dsn is None:
        raise SettingsError("that run used a database of yours: name it again with --dsn")
    return settings
