"""Hostile names through the message builder and the metrics: `python -m tests.matrix.names --help`.

Every message must be one that the Bot API takes, with every name reachable; every exposition one that a strict
reader understands, with one series for each target. The seed repeats a failure.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families

from argus_sched.agent.check import PassReport, Result
from argus_sched.agent.metrics import render
from argus_sched.agent.status import Phase, Status
from argus_sched.agent.telling.incidents import Incident, incident_id
from argus_sched.agent.telling.messages import (
    MOST_ENTITIES,
    SHORT_LIMIT,
    TELEGRAM_LIMIT,
    Digest,
    Message,
    compose,
)
from argus_sched.agent.telling.notices import Change, Line, Notice

AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
MARKUP = "*_[]()~`>#+-=|{}.!\\<&;\"'%/@:,"
ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz 0123456789_-",
    MARKUP,
    "\x00\x01\x07\b\t\n\v\f\r\x1b\x7f\x85\x9b\u2028\u2029",
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\u00ad\U000e0041",
    "e\u0301\u0300\u0489\u0e49ก\u093fक\u1ab0",
    "👩\u200d🔬👨\u200d👩\u200d👧🏳️\u200d🌈🇩🇪👍🏽✈️",
    "ΩЖ中文字한글שלוםمرحبا→…",
    "\ud800\udbff\udc00\udfff",
    "\U0001f600\U00010000\U0010ffff\ue000\ufffe\uffff",
)
_SERIES = re.compile(r'^[a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? [-+.\deNa]+$')


class WrongError(AssertionError):
    """A name broke something."""


def names(rng: random.Random, count: int) -> list[str]:
    """That many names, of every kind that people and accidents make, and none twice."""
    # Of one width, so that no name's own digits make two numbers look alike.
    return [f"{_name(rng)}{rng.choice(('', ' '))}{number:03}" for number in range(count)]


def _name(rng: random.Random) -> str:
    length = rng.choice((0, 1, 3, 12, 40, 40, 200, 5000 if rng.random() < 0.02 else 20))
    if rng.random() < 0.3:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(length))
    alphabets = rng.sample(ALPHABETS, rng.randint(1, 3))
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(length))


def check_messages(found: Sequence[str], rng: random.Random) -> None:
    """The digest of a pass in which all of them changed."""
    lines = [_line(name, number, rng) for number, name in enumerate(found, start=1)]
    messages = compose(Digest(AT, tuple(lines)))
    covered = sorted(number for message in messages for number in message.covers)
    _demand(covered == list(range(1, len(found) + 1)), f"{len(covered)} of {len(found)} notices are told")
    _demand(1 <= len(messages) <= 2, f"{len(messages)} messages")
    for message in messages:
        _check_message(message)


def _line(name: str, number: int, rng: random.Random) -> Line:
    change, status = rng.choice(list(Change)), rng.choice((Status.WARN, Status.CRIT, Status.UNKNOWN))
    closed = AT if change.is_end else None
    incident = Incident(
        incident_id(name, AT),
        f"labs/{name}",
        AT - timedelta(hours=1),
        status,
        Phase.STALE,
        name,
        name[::-1],
        name,
        closed,
    )
    return Line(Notice("telegram", change, status, incident, AT, number), (number,))


def _check_message(message: Message) -> None:
    text = message.text.encode("utf-16-le")  # raises for half a character
    size = len(text) // 2
    _demand(0 < size <= TELEGRAM_LIMIT and message.text.strip() == message.text.strip("\n "), f"{size} units")
    _demand(len(message.entities) <= MOST_ENTITIES, f"{len(message.entities)} entities")
    _demand(len(message.short.encode("utf-16-le")) // 2 <= SHORT_LIMIT, "the short text is long")
    end = 0
    for entity in message.entities:
        _demand(end <= entity.offset and entity.length > 0, f"{entity} overlaps")
        end = entity.offset + entity.length
        _demand(end <= size, f"{entity} ends behind the text")
        text[2 * entity.offset : 2 * end].decode("utf-16-le")  # raises where a pair is cut
    _demand(
        not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", message.text), "it steers"
    )


def check_metrics(found: Sequence[str], *, thoroughly: bool) -> None:
    """The exposition of a pass over all of them."""
    results = tuple(
        Result("labs", "scheduler_jobs", f"labs/{name}", Status.OK, Phase.FRESH, name, name=name, last_run=AT)
        for name in found
    )
    text = render(PassReport(AT, results, (), complete=True, seconds=0.1)).decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    _demand(text.count("\n") == len(text.splitlines()), "a name broke a line")
    for line in lines:
        _demand(bool(_SERIES.match(line)), f"not a series: {line!r}")
    targets = [line for line in lines if line.startswith("argus_check_status{")]
    _demand(
        len(set(targets)) == len(targets) == len(found), f"{len(targets)} series for {len(found)} targets"
    )
    if thoroughly:
        read = [s for family in text_string_to_metric_families(text) for s in family.samples]
        _demand(len(read) == len(lines), f"{len(read)} samples read of {len(lines)}")


def _demand(holds: bool, problem: str) -> None:
    if not holds:
        raise WrongError(problem)


def batches(count: int, seed: int) -> Iterator[int]:
    """The seeds of enough batches for `count` names."""
    left = count
    while left > 0:
        left -= size_of(seed)
        yield seed
        seed += 1


def size_of(seed: int) -> int:
    """How many names the batch of a seed has: mostly a few, at times a whole estate."""
    return random.Random(seed).choice((1, 2, 5, 20, 60, 60, 150, 500))


def check_batch(seed: int) -> None:
    """One batch; raises WrongError or UnicodeError."""
    rng = random.Random(seed)
    found = names(rng, rng.choice((1, 2, 5, 20, 60, 60, 150, 500)))
    check_messages(found, rng)
    check_metrics(found, thoroughly=seed % 20 == 0)


def tried(seed: int) -> tuple[int, str]:
    """The seed, and what its batch broke; empty for nothing."""
    try:
        check_batch(seed)
    except (WrongError, UnicodeError) as error:
        return seed, f"{type(error).__name__}: {error}"
    return seed, ""


def main() -> int:
    """Returns 1 when a name broke something."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.names", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first batch's seed")
    parser.add_argument("--jobs", type=int, default=1, help="in so many processes")
    args = parser.parse_args()
    began, done = time.monotonic(), 0
    with ProcessPoolExecutor(args.jobs) as pool:
        for seed, problem in pool.map(tried, batches(args.count, args.seed), chunksize=20):
            if problem:
                pool.shutdown(cancel_futures=True)
                print(f"FAILED seed {seed}: {problem}")
                return 1
            done += size_of(seed)
    print(f"{done} names, none of them broke a message or a metric, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
