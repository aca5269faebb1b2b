"""Lines from stored pieces, and which of them are known to begin where they seem to."""

from __future__ import annotations

import pytest

from argus_sched.agent.reading.stamps import SECOND_NS
from argus_sched.agent.sources.pieces import Beginnings, Line, LineJoiner, Piece

S = SECOND_NS


def joined(*pieces: Piece, trusted: bool = True) -> list[Line]:
    joiner = LineJoiner(Beginnings(trusted))
    return [line for piece in pieces for line in joiner.add(piece)] + joiner.rest()


def test_pieces_of_one_stamp_make_a_line_whatever_the_other_stream_does() -> None:
    assert joined(
        Piece(1, "stdout", b"aa"),
        Piece(2, "stderr", b"run\n"),
        Piece(1, "stdout", b"bb\n"),
        Piece(3, "stdout", b"\n"),
    ) == [Line(2, "stderr", b"run"), Line(1, "stdout", b"aabb"), Line(3, "stdout", b"")]


def test_another_stamp_begins_another_line() -> None:
    assert joined(Piece(1, "stdout", b"killed here"), Piece(2, "stdout", b"next\n")) == [
        Line(1, "stdout", b"killed here"),
        Line(2, "stdout", b"next"),
    ]


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        # The very first record may go on from one that was not read.
        ([Piece(1 * S, "stdout", b"ghost\n")], [None]),
        # All pieces of a line carry its first stamp: one that is older than what stands before it is a rest.
        ([Piece(5 * S, "stderr", b"a\n"), Piece(1 * S, "stdout", b"ghost\n")], [None, None]),
        # Within the race of two streams nothing is proven.
        ([Piece(5 * S, "stderr", b"a\n"), Piece(5 * S + 1, "stdout", b"ghost\n")], [None, None]),
        # Its beginning would be younger than an older record, so it would have been read.
        ([Piece(1 * S, "stderr", b"a\n"), Piece(9 * S, "stdout", b"real\n")], [None, b"real"]),
        # From the second record on each stream is known.
        ([Piece(1 * S, "stdout", b"ghost\n"), Piece(1 * S, "stdout", b"real\n")], [None, b"real"]),
        # The rest of a doubtful line stays doubtful.
        ([Piece(1 * S, "stdout", b"gh"), Piece(1 * S, "stdout", b"ost\n")], [None]),
    ],
)
def test_a_first_record_counts_only_with_proof(pieces: list[Piece], texts: list[bytes | None]) -> None:
    assert [line.text for line in joined(*pieces, trusted=False)] == texts


def test_a_line_without_end_keeps_only_its_beginning() -> None:
    pieces = [Piece(1, "stdout", b"x" * 16384) for _ in range(200)]
    (line,) = joined(*pieces)
    assert line.text is not None
    assert len(line.text) == 1 << 20


def test_pieces_with_stamps_of_their_own_are_one_line_and_a_late_one_forges_none() -> None:
    """journald stamps each piece as it receives it."""
    joiner = LineJoiner(Beginnings(trusted=True), patience_ns=10 * S)
    pieces = [
        Piece(1 * S, "stdout", b"body="),
        Piece(1 * S + 5, "stdout", b"ghost\n"),
        Piece(2 * S, "stdout", b"killed here"),
        Piece(60 * S, "stdout", b"ghost\n"),
        Piece(61 * S, "stdout", b"real\n"),
    ]
    lines = [line for piece in pieces for line in joiner.add(piece)]
    assert [line.text for line in lines] == [b"body=ghost", b"killed here", None, b"real"]
