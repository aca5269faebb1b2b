"""Who knows the truth: what each pass must say and tell, worked out without the agent's code.

A subject is a job, the lock, or a node of the target tree. Of each the play's truth says in every pass what is
the case: a status, or None where nobody can see. The oracle follows what people know from pass to pass, and
compares. At the end the table's row is held against everything that reached the chat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from argus_sched.agent.check import PassReport
from argus_sched.agent.status import Status
from tests.matrix.stage import Told
from tests.matrix.table import Cell

EVERY = timedelta(minutes=1)


class WrongError(AssertionError):
    """The agent said or told something else than the truth."""


@dataclass(frozen=True)
class Truth:
    """What is the case with one subject; `patience` is how long it must last before people are told, and
    `not_before` the instant before which they are not.

    `uncertain` says that a hole in the log may hide it: it may be shown as well, or as unknown.
    """

    status: Status | None
    patience: timedelta = timedelta(0)
    uncertain: bool = False
    not_before: datetime | None = None


@dataclass
class Known:
    """What people know of one subject, and since when it has looked worse than that."""

    level: Status = Status.OK
    worse_since: datetime | None = None


@dataclass
class Oracle:
    """Follows one play."""

    known: dict[str, Known] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    last_pass: datetime | None = None

    def judge(self, report: PassReport, truths: Mapping[str, Truth], at: datetime) -> None:
        """Every target and every node, as this pass says they are."""
        for result in report.results:
            expected = truths[result.target].status
            if truths[result.target].uncertain and result.status in (expected, Status.OK, Status.UNKNOWN):
                continue
            if result.status is not (Status.UNKNOWN if expected is None else expected):
                kind = "false" if result.status is Status.CRIT else "wrong"
                raise WrongError(
                    f"{at:%H:%M:%S} {kind} {result.status.name} for {result.target}, truth {expected!r}: "
                    f"{result.phase}, {result.summary}; {result.reason}"
                )
        for node in report.nodes:
            subject = f"{node.app}/{node.source}" if node.app else node.source
            expected = truths.get(subject, Truth(Status.OK)).status
            if expected is not None and node.up is not (expected is Status.OK):
                raise WrongError(
                    f"{at:%H:%M:%S} {node.source} up={node.up}, truth {expected!r}: {node.problem}"
                )

    def expect(self, truths: Mapping[str, Truth], at: datetime) -> Counter[tuple[str, str]]:
        """What this pass must tell."""
        quiet = self.last_pass is not None and at - self.last_pass > 3 * EVERY
        self.last_pass = at
        news: Counter[tuple[str, str]] = Counter()
        for subject, truth in truths.items():
            label = self._follow(self.known.setdefault(subject, Known()), truth, at, quiet)
            if label:
                news[subject, label] += 1
        return news

    def compare(self, news: Counter[tuple[str, str]], lines: Collection[Told], at: datetime) -> None:
        """What was told in this pass against what must be."""
        told = Counter((line.subject, line.label) for line in lines)
        if told != news:
            missed, extra = news - told, told - news
            raise WrongError(
                f"{at:%H:%M:%S} missed {sorted(missed.elements())}, not true {sorted(extra.elements())}"
            )

    def level(self, subject: str) -> Status:
        """What people take for the case with `subject`."""
        return self.known.get(subject, Known()).level

    def close(self, cell: Cell, subjects: Collection[str]) -> None:
        """Everything that was told against the table's row."""
        for subject in {*subjects, *(line.subject for line in self.told)}:
            labels = [line.label for line in self.told if line.subject == subject]
            ends = labels.count("OK")
            alerts, concerned = len(labels) - ends, subject in subjects
            wanted, most = (cell.alerts, cell.alerts + cell.copies) if concerned else (0, 0)
            if not wanted <= alerts <= most or ends != (cell.recoveries if concerned else 0):
                raise WrongError(f"{subject}: told {labels}, the table says {cell}")
            if concerned and cell.verdict.name not in labels:
                raise WrongError(f"{subject}: told {labels}, the table says {cell.verdict.name}")

    @staticmethod
    def _follow(known: Known, truth: Truth, at: datetime, quiet: bool) -> str:
        seen = truth.status
        if truth.uncertain and seen is Status.CRIT and known.level is not Status.CRIT:
            seen = known.level
        if seen is None or (seen is Status.UNKNOWN and known.level is Status.CRIT):
            return ""
        if seen.severity <= known.level.severity:
            known.worse_since = None
        elif known.worse_since is None:
            known.worse_since = at
        if seen is known.level or quiet:
            return ""
        if known.worse_since is not None and at - known.worse_since < truth.patience:
            return ""
        if known.worse_since is not None and truth.not_before is not None and at < truth.not_before:
            return ""
        known.level, known.worse_since = seen, None
        return seen.name
