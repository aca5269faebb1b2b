"""Of a block of frames, the records that matter; the others as a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from argus_sched.agent.reading.loglines import MOST_PIECES
from argus_sched.agent.reading.speech import is_unfinished, places
from argus_sched.agent.reading.stamps import parse_stamp
from argus_sched.agent.sources.frames import Span
from argus_sched.agent.sources.pieces import Piece, Quiet

_LF = 10


class Listener:
    """Passes over the records that cannot speak.

    It still cuts out what an exact reading needs: every piece of a line longer than one record, and what may
    be the rest of a name.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}

    def heard(self, data: bytes, spans: Sequence[Span], quietly: bool) -> Iterator[Piece | Quiet]:
        """The records of one block in order; without `quietly`, each of them."""
        loud = [*places(data), len(data)]
        at = 0
        quiet: list[Span] = []
        for span in spans:
            stream, start, end = span
            while loud[at] < start:
                at += 1
            speaks, ended = loud[at] < end, data[end - 1] == _LF
            if quietly and ended and not speaks and stream not in self._wanted:
                quiet.append(span)
                continue
            if quiet:
                yield _passed(data, quiet)
                quiet = []
            payload = data[start:end]
            self._note(stream, ended, unfinished=speaks and is_unfinished(payload))
            stamp = parse_stamp(payload)
            if stamp is not None:
                yield Piece(stamp[0], stream, payload[stamp[1] + 1 :])
        if quiet:
            yield _passed(data, quiet)

    def _note(self, stream: str, ended: bool, *, unfinished: bool) -> None:
        """How many of the stream's next records must be cut out, whatever they say."""
        left = MOST_PIECES if unfinished else max(self._wanted.get(stream, 0) - 1, 0 if ended else 1)
        if left:
            self._wanted[stream] = left
        else:
            self._wanted.pop(stream, None)


def _passed(data: bytes, spans: Sequence[Span]) -> Quiet:
    """A run of quiet records; the stamp at the end is what the next read goes on from."""
    _, start, end = spans[-1]
    stamp_ns, length = parse_stamp(data[start:end]) or (-1, 0)
    text = data[start : start + length]
    same = takewhile(lambda span: data.startswith(text, span[1]), reversed(spans))
    return Quiet(len(spans), frozenset(stream for stream, _, _ in spans), stamp_ns, sum(1 for _ in same))
