"""A match across two pieces of a very long line is found once, in the piece where it ends."""

from __future__ import annotations

import pytest

from jobs.logs.lines import encoded
from jobs.logs.long_lines import REACH, LongLines
from jobs.logs.matching import Hit, Matcher, Question
from monarch_client.runner.base.lines import MAX_PIECE_BYTES, LineSplitter

NEEDLE = "the needle"
Stored = tuple[int, str, str, bool]


def pieces(text: str, rank: int = 0, stream: str = "stdout") -> list[Stored]:
    """Cut a line as a runner does."""
    cut = LineSplitter().feed(text.encode() + b"\n")
    return [(rank, stream, piece.text, piece.more) for piece in cut]


def raw(*lines: Stored) -> bytes:
    return "\n".join(
        encoded(rank, stream, 1000, text, more=more) for rank, stream, text, more in lines
    ).encode()


def found(text: str, *stretches: bytes, **requested) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return (number, spans) of the hits in stretches that follow each other."""
    matcher, long_lines, first = Matcher(Question(text, **requested)), LongLines(), 1
    hits: list[Hit] = []
    for stretch in stretches:
        hits += matcher.hits(stretch, first, long_lines=long_lines)[0]
        first += stretch.count(b"\n") + 1
    return [(hit.number, hit.spans) for hit in hits]


def with_needle(offset: int, borders: int = 3) -> str:
    """Return a line of that many borders and a half; the needle is `offset` after the second."""
    begin = 2 * MAX_PIECE_BYTES + offset
    return "x" * begin + NEEDLE + "y" * (MAX_PIECE_BYTES * borders + 500 - begin)


@pytest.mark.parametrize("requested", [{}, {"with_case": True}, {"is_regex": True}])
def test_wherever_a_border_falls_a_match_is_found_exactly_once(requested) -> None:
    for offset in range(-len(NEEDLE), 1):
        stored = raw(*pieces(with_needle(offset)))
        behind = offset + len(NEEDLE)
        if offset == -len(NEEDLE):
            expected = [(2, [(MAX_PIECE_BYTES + offset, MAX_PIECE_BYTES)])]
        else:
            expected = [(3, [(max(0, offset), behind)])]
        assert found(NEEDLE, stored, **requested) == expected


def test_pieces_in_two_stretches_with_other_ranks_between_them_belong_together() -> None:
    first, second, third, fourth = pieces(with_needle(-4), rank=7)
    others = [(0, "stdout", f"step {n}", False) for n in range(900)]
    for stretches in (
        [raw(first, second, *others), raw(*others, third, fourth)],
        [raw(first), raw(second), raw(*others), raw(third), raw(fourth)],
        [raw(*others, first, *others, second, *others, third, fourth)],
    ):
        ((_, spans),) = found(NEEDLE, *stretches)
        assert spans == [(0, len(NEEDLE) - 4)]
        assert found(NEEDLE, *stretches, rank=7) == found(NEEDLE, *stretches)
        assert found(NEEDLE, *stretches, rank=0) == []


def test_the_next_line_of_another_rank_or_stream_is_not_its_end() -> None:
    first, second, *_ = pieces(with_needle(-4))
    end = NEEDLE[4:]
    assert found(NEEDLE, raw(first, second, (1, "stdout", end, False))) == []
    assert found(NEEDLE, raw(first, second, (0, "stderr", end, False))) == []
    assert found(NEEDLE, raw(first, second, (10, "stdout", end, False))) == []
    whole = (0, "stdout", second[2], False)
    assert found(NEEDLE, raw(first, whole, (0, "stdout", end, False))) == []


def test_a_stretch_that_follows_on_nothing_remembers_nothing() -> None:
    _, second, third, fourth = pieces(with_needle(-4))
    assert found(NEEDLE, raw(second), raw(third, fourth)) == [(2, [(0, len(NEEDLE) - 4)])]
    matcher = Matcher(Question(NEEDLE))
    assert matcher.hits(raw(second), 1) == ([], False)
    assert matcher.hits(raw(third, fourth), 2) == ([], False)


def test_what_matched_in_one_piece_is_not_reported_again_by_the_next() -> None:
    text = "x" * (MAX_PIECE_BYTES - 20) + "error 17 and words" + "y" * 500 + "z"
    stored = raw(*pieces(text))
    assert [number for number, _ in found("error .*", stored, is_regex=True)] == [1]
    assert [number for number, _ in found("error .*z$", stored, is_regex=True)] == [2]


def test_what_is_remembered_is_no_begin_of_a_line_and_the_whole_next_piece_counts() -> None:
    stored = raw(*pieces("x" * (3 * MAX_PIECE_BYTES + 9)))
    assert [at for at, _ in found(r"\Ax+y?x$", stored, is_regex=True)] == [1, 2, 3, 4]
    assert found("^xyx", stored, is_regex=True) == []
    head = "x" * (MAX_PIECE_BYTES - 1) + "a" + "b" * (REACH + 10) + "c" + "x" * 99
    assert found("ab+c", raw(*pieces(head)), is_regex=True) == [(2, [(0, REACH + 11)])]
    assert found("ab+$", raw(*pieces(head)), is_regex=True) == []
    assert found("ab+cx+$", raw(*pieces(head)), is_regex=True) == [(2, [(0, REACH + 110)])]


def test_a_match_that_begins_further_back_than_is_remembered_is_not_found() -> None:
    for length, expected in ((REACH - 10, [2]), (REACH + 10, [])):
        text = "x" * (MAX_PIECE_BYTES - length - 1) + "a" + "b" * length + "c"
        assert [at for at, _ in found("ab+c", raw(*pieces(text)), is_regex=True)] == expected


def test_colors_are_left_out_on_both_sides_and_a_hit_keeps_them() -> None:
    half = "x" * (MAX_PIECE_BYTES - 30) + "\x1b[31mthe nee"
    lines = [(0, "stdout", half, True), (0, "stdout", "\x1b[1mdle\x1b[0m is red", False)]
    (hit,) = Matcher(Question(NEEDLE)).hits(raw(*lines), 1)[0]
    assert (hit.number, hit.spans) == (2, [(0, 3)])
    assert hit.stored.endswith("\x1b[1mdle\x1b[0m is red")


def test_further_matches_of_the_piece_are_reported_besides_and_a_limit_counts_lines() -> None:
    first, second, third, fourth = pieces(with_needle(-4))
    third = (0, "stdout", third[2] + NEEDLE, True)
    stored = raw(first, second, third, fourth, (0, "stdout", NEEDLE, False))
    length = len(third[2])
    expected = [(0, 6), (length - len(NEEDLE), length)]
    assert found(NEEDLE, stored) == [(3, expected), (5, [(0, len(NEEDLE))])]
    hits, is_cut = Matcher(Question(NEEDLE)).hits(stored, 1, limit=1)
    assert ([hit.number for hit in hits], is_cut) == ([3], True)
    assert [hit.number for hit in Matcher(Question(NEEDLE)).hits(stored, 1, begin=4)[0]] == [5]


def test_a_policys_pattern_and_a_level_are_met_across_a_border() -> None:
    text = "x" * (MAX_PIECE_BYTES - 12) + " ValueEr" + "ror: loss is nan"
    stored = raw(*pieces("x" * 4 + text))
    question = Question("a|ValueError", is_regex=True, parts=("aa", "ValueError"))
    (hit,) = [each for each in Matcher(question).hits(stored, 1)[0] if each.parts]
    assert (hit.number, hit.parts) == (2, [1])
    assert [at for at, _ in found("", stored, level="error")] == [2]
    assert [at for at, _ in found("loss", stored, level="error")] == [2]


def test_a_piece_that_came_short_because_its_program_paused_stands_alone() -> None:
    stored = raw((0, "stdout", "the nee", True), (0, "stdout", "dle", False))
    assert found(NEEDLE, stored) == []
