"""The lines that match, and where; patterns that are wrong or heavy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jobs
from jobs.escapes import SEQUENCE
from jobs.logs.bad_patterns import BadPatternError
from jobs.logs.lines import encoded
from jobs.logs.matching import (
    MOST_SPANS,
    Hit,
    Matcher,
    Question,
    compiled_part,
)

TEXTS = ["Step 1 ok", "step 2 failed", "", "\x1b[31mError\x1b[0m: step 3", "naïve → 💥 step"]


def piece(*texts: str, rank: int = 0, stream: str = "stdout") -> bytes:
    return "\n".join(encoded(rank, stream, 1000 + i, text) for i, text in enumerate(texts)).encode()


def hits(raw: bytes, text: str, **requested) -> list[Hit]:
    return Matcher(Question(text, **requested)).hits(raw, 1)[0]


def numbers(raw: bytes, text: str, **requested) -> list[int]:
    return [hit.number for hit in hits(raw, text, **requested)]


def test_plain_words_are_found_whatever_their_case_unless_requested() -> None:
    raw = piece(*TEXTS)
    assert numbers(raw, "step") == [1, 2, 4, 5]
    assert numbers(raw, "step", with_case=True) == [2, 4, 5]
    assert numbers(raw, "STEP", with_case=True) == []
    assert numbers(raw, ".") == []


def test_rank_and_time_of_a_line_are_not_part_of_its_text() -> None:
    raw = piece("a", "b 0 o1000 c")
    assert numbers(raw, "o1000") == [2]
    assert numbers(raw, "0 o") == [2]
    assert numbers(raw, "^[0-9]", is_regex=True) == []


def test_spans_count_characters_of_what_is_shown() -> None:
    raw = piece(*TEXTS)
    assert [hit.spans for hit in hits(raw, "step")] == [[(0, 4)], [(0, 4)], [(7, 11)], [(10, 14)]]
    (found,) = hits(raw, "Error: step")
    assert found.spans == [(0, 11)]
    assert found.stored.endswith(TEXTS[3])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^step", [1, 2]),
        ("^step|^error", [1, 2, 4]),
        (r"\bok$", [1]),
        (r"\Astep", [1, 2]),
        (r"(?-m)ok$", [1]),
        ("(?i)FAILED", [2]),
        ("[^a-z ]ok", []),
        (r"[^x]{30,}", []),
        ("^$", [3]),
        ("^*ok", [1]),
        (r"\d", [1, 2, 4]),
        ("x*", [1, 2, 3, 4, 5]),
        (r"\x{1F4A5}", [5]),
    ],
)
def test_a_regular_expression_sees_one_line_at_a_time(pattern: str, expected: list[int]) -> None:
    assert numbers(piece(*TEXTS), pattern, is_regex=True) == expected


def test_the_choice_of_rank_stream_and_time_goes_with_every_search() -> None:
    raw = piece("x", "x") + b"\n" + piece("x", "x", rank=1, stream="stderr")
    assert numbers(raw, "x", rank=1) == [3, 4]
    assert numbers(raw, "x", stream="stderr") == [3, 4]
    assert numbers(raw, "", since_ms=1001) == [2, 4]
    assert numbers(raw, "", until_ms=1001, rank=0) == [1]


def test_a_limit_says_that_more_may_follow_and_a_begin_goes_on_behind_it() -> None:
    matcher = Matcher(Question("x"))
    raw = piece(*("x" * 5))
    first, is_cut = matcher.hits(raw, 11, limit=3)
    assert ([hit.number for hit in first], is_cut) == ([11, 12, 13], True)
    rest, is_cut = matcher.hits(raw, 11, begin=14, limit=3)
    assert ([hit.number for hit in rest], is_cut) == ([14, 15], False)


def test_a_line_of_matches_alone_marks_only_some_of_them() -> None:
    (hit,) = hits(piece("a" * 5000), "a")
    assert len(hit.spans) == MOST_SPANS


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("(abc", 0),
        (r"\(a(b)(c", 6),
        ("a**", 1),
        ("x[z-a]", 2),
        (r"ab\K", 2),
        ("é(?=b)", 1),
        ("x{1001}", 1),
        ("((a{10}){100}){999}", 14),
    ],
)
def test_a_bad_pattern_is_refused_with_its_place(pattern: str, position: int) -> None:
    with pytest.raises(BadPatternError) as refused:
        Matcher(Question(pattern, is_regex=True))
    assert refused.value.position == position


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "([a-zA-Z]+)*z"])
def test_patterns_that_hang_other_engines_take_no_longer_than_others(pattern: str) -> None:
    raw = piece("a" * 60_000 + "!")
    assert numbers(raw, pattern, is_regex=True) == []


def test_of_several_patterns_a_hit_says_which_it_fits() -> None:
    parts = ("(?i:error)", r"^step \d", "nothing")
    question = Question("|".join(parts), is_regex=True, with_case=True, parts=parts)
    raw = piece("all is well", "step 3: ERROR", "an \x1b[31merr\x1b[0mor", "step 4")
    found = Matcher(question).hits(raw, 1)[0]
    assert [(hit.number, hit.parts) for hit in found] == [(2, [0, 1]), (3, [0]), (4, [1])]


def test_a_part_that_would_swallow_what_follows_it_is_refused() -> None:
    with pytest.raises(BadPatternError):
        compiled_part(r"\Qabc")


@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
def test_a_link_is_searched_by_its_text(end) -> None:
    link = f"see \x1b]8;id=1;https://hub.example/run/7{end}the run\x1b]8;;{end} now"
    raw = piece(link, "\x1b(B\x1b[mthe run \x1bPq#1\x1b\\now")
    (first, second), _ = Matcher(Question("the run now")).hits(raw, 1)
    assert (first.spans, second.spans) == ([(4, 15)], [(0, 11)])
    assert numbers(raw, "hub.example") == []


def test_the_page_leaves_out_the_sequences_that_a_search_leaves_out() -> None:
    script = (Path(jobs.__file__).parent / "static/jobs/js/log/ansi.js").read_text()
    (literal,) = re.findall(r"const SEQUENCE =\s*/(.*)/g;", script)
    # There some parts are groups.
    assert literal.replace("([0-?]*)", "[0-?]*").replace("([@-~])", "[@-~]") == SEQUENCE


def test_hostile_text_is_searched_like_any_other() -> None:
    raw = piece("nul \0 here", "<script>alert(1)</script>", "\x1b]0;title", "\x1b[", "\r 5%\r 6%")
    assert numbers(raw, "\0") == [1]
    assert numbers(raw, "<script>") == [2]
    assert numbers(raw, "title") == [3]
    assert numbers(raw, " 5%") == [5]


ALPHABET = "ab\x1b[m3 0o\t.é"
PATTERNS = ["a", "^a", "b$", "a.b", "[^a]b", r"\ba", r"\Bb", "a|^b", "(?m)a$", "^a|b", "a{2}", "o0"]


@given(st.lists(st.text(ALPHABET, max_size=8), min_size=1, max_size=8), st.sampled_from(PATTERNS))
def test_looking_at_a_whole_piece_finds_what_looking_at_each_line_finds(texts, pattern) -> None:
    matcher = Matcher(Question(pattern, is_regex=True, with_case=True))
    at_once = [hit.number for hit in matcher.hits(piece(*texts), 1)[0]]
    shown = [re.sub(SEQUENCE, "", text) for text in texts]
    one_by_one = [
        number
        for number, text in enumerate(shown, 1)
        if re.search(pattern.replace("(?m)", ""), text, re.ASCII)
    ]
    assert at_once == one_by_one
