"""How long each failover takes, over many repetitions, beside its target.

    python tests/bench/bench_failover.py [--repeat 100] [--profile default] [FAULT ...]

Each repetition waits until a leader leads and an heir waits, then does the fault to the leader at a random moment.
"Stopped" counts from the fault to the old leader's last moment of trust (of a frozen one, from its thaw), "next
leader" to the moment at which the next one's gate is open (of a restart, from when the database accepts
connections; of a clean stop, from when the old leader let go). The jobs run on meanwhile, and the run is judged as
any other: no due time may be lost or run twice.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argus_sched.harness import arena, faults, invariants, run
from argus_sched.harness.console import ending_cleanly
from argus_sched.harness.faults import Ground
from argus_sched.harness.figures import Percentiles
from argus_sched.harness.profiles import Profile, profile
from argus_sched.harness.scenario import Step
from argus_sched.harness.settings import RunSettings, plans
from argus_sched.harness.verdict import Verdict

JOBS, WORKERS, PATIENCE = 10, 3, 60.0


@dataclass(frozen=True)
class Target:
    """Milliseconds: p50, p99 and max of the promotion, and of the demotion where there is a target."""

    promotion: tuple[float | None, float | None, float]
    demotion: tuple[float | None, float | None, float] | None = None


def targets(chosen: Profile) -> dict[str, Target]:
    """The figures to reach, for one profile."""
    lease, probe = (chosen.lease or 0.0) * 1000.0, chosen.probe * 1000.0
    return {
        "kill": Target((10, 50, 250)),
        "pair": Target((None, None, probe)),
        "terminate": Target((10, 50, 250), (1, 30, 100)),
        "restart": Target((100, 500, 1000)),
        "crash": Target((100, 500, 1000)),
        "freeze": Target((None, None, lease + 100), (None, None, 25)),
        "partition": Target((None, None, lease + 50), (None, None, 0.9 * lease)),
        "stop": Target((5, 20, 100)),
        "rolling": Target((5, 20, 100)),
        "fork": Target((None, None, lease + 100)),
    }


def measure(fault: str, repeat: int, chosen: Profile, dice: random.Random) -> Verdict:
    """The verdict on `repeat` repetitions of one fault."""
    settings = RunSettings(workers=WORKERS, jobs=JOBS, duration=0, faults=(fault,), profile=chosen.name)
    jobs = plans(JOBS)
    with (
        tempfile.TemporaryDirectory(prefix="argus-bench-") as folder,
        arena.set_up(settings, Path(folder)) as ground,
    ):
        after = run.begin(ground, jobs, lambda _: None)
        for number in range(repeat):
            _once(ground, fault, dice)
            _progress(f"{fault}: {number + 1} of {repeat}")
        _await_heir(ground)
        span = round(after * 1000), round(time.time() * 1000)
        run.drain(ground, jobs, span, lambda _: None)
        ground.cluster.stop()
        history = ground.cluster.history(run.claims(ground, jobs, span))
    _progress("")
    return invariants.judge(history, jobs, span, chosen.rules())


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<40}\r{text}", end="", file=sys.stderr, flush=True)


def _once(ground: Ground, fault: str, dice: random.Random) -> None:
    _await_heir(ground)
    ground.cluster.rest(dice.uniform(0.05, 0.05 + ground.profile.tick))
    silence = ground.profile.silence
    lasts = {"freeze": silence + 0.4, "partition": silence + 0.4, "fork": silence + 0.4}.get(fault, 0.0)
    before = ground.leader().epoch
    faults.INJECT[fault](ground, Step(0.0, fault, seconds=lasts))
    ground.cluster.wait_until(lambda: _epoch(ground) > before, PATIENCE, "nobody took over")


def _epoch(ground: Ground) -> int:
    leader = ground.cluster.in_role("leader")
    return leader.epoch if leader is not None else 0


def _await_heir(ground: Ground) -> None:
    cluster = ground.cluster
    cluster.wait_until(
        lambda: cluster.complete() and cluster.in_role("heir") is not None, PATIENCE, "no heir"
    )


def line(fault: str, verdict: Verdict, target: Target) -> str:
    """One row of the table."""
    found = verdict.faults[fault]
    reached = _reached(found.promotion_ms, target.promotion) and _reached(found.demotion_ms, target.demotion)
    safe = "held" if verdict.held else f"VIOLATED ({len(verdict.violations)})"
    cells = [
        f"{fault:<10}{found.count:>5}  ",
        f"{_three(_values(found.demotion_ms)):>24} {_target(target.demotion):>19}  ",
        f"{_three(_values(found.promotion_ms)):>24} {_target(target.promotion):>19}  ",
        f"{'reached' if reached else 'MISSED':<9}{verdict.expected:>6} due, {verdict.interrupted} interrupted, {safe}",
    ]
    return "".join(cells)


def _reached(found: Percentiles, target: Sequence[float | None] | None) -> bool:
    pairs = zip(_values(found), target or (), strict=False)
    return all(value is None or limit is None or value <= limit for value, limit in pairs)


def _values(found: Percentiles) -> tuple[float | None, float | None, float | None]:
    return found.p50, found.p99, found.max


def _three(values: Sequence[float | None]) -> str:
    return " / ".join("-" if value is None else f"{value:.1f}" for value in values)


def _target(values: Sequence[float | None] | None) -> str:
    return f"({' / '.join('-' if value is None else f'{value:g}' for value in values)})" if values else ""


def main() -> int:
    """Measure, and print a line for each fault as it is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--profile", default="default")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chosen, dice = profile(args.profile), random.Random(args.seed)
    wanted = targets(chosen)
    print(f"milliseconds as p50 / p99 / max (target), profile {chosen.name}, {WORKERS} workers, {JOBS} jobs")
    print(f"{'fault':<10}{'times':>5}  {'old leader stopped':>44}  {'next leader':>44}")
    held = True
    with ending_cleanly():
        for fault in args.faults or wanted:
            verdict = measure(fault, args.repeat, chosen, dice)
            held &= verdict.held
            print(line(fault, verdict, wanted[fault]), flush=True)
            for violation in verdict.violations[:3]:
                print(f"    {violation.message}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
