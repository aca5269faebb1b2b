"""What is wrong in files people write: every problem with its place, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from argus_sched.errors import SettingsError


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong; `str()` is the line `file:line: path: message`, without a path for syntax."""

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.words}"

    @property
    def words(self) -> str:
        """What is wrong, without where in which file."""
        return f"{self.path}: {self.message}" if self.path else self.message


class WrongValueError(ValueError):
    """One value is not what its place asks for; whoever knows the place makes it a Problem."""


@dataclass
class Problems:
    """Problems and warnings of one file, in the order they were met."""

    file: str
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def add(self, line: int, path: str, message: str) -> None:
        """Note that the value at `path` is wrong."""
        self.errors.append(Problem(self.file, line, path, message))

    def warn(self, line: int, path: str, message: str) -> None:
        """Note that the value at `path` is usable and probably not meant."""
        self.warnings.append(Problem(self.file, line, path, message))


class ProblemsError(SettingsError):
    """Files are wrong; `str()` has one line for each problem, by file and line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))
