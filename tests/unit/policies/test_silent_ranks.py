"""Ranks whose program writes nothing for much longer than those of the other ranks."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from jobs.policies.silent_ranks import LEAST, silent_ranks

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def silent(*ages_s: float | None) -> set[int]:
    last = {
        rank: None if age_s is None else NOW - timedelta(seconds=age_s)
        for rank, age_s in enumerate(ages_s)
    }
    return set(silent_ranks(last, NOW - timedelta(hours=1), NOW))


@pytest.mark.parametrize(
    ("ages_s", "expected"),
    [
        ((1, 2, 120, 1), {2}),
        ((20, 300, 25, 30, 400), {1, 4}),
        # All write rarely, or all hang: the one that is a bit older is no exception.
        ((100, 110, 120, 100), set()),
        # Only rank 0 writes, as in many programs.
        ((1, 900, 900, 900), set()),
        ((1, None, None, None), set()),
        ((1, None), set()),
        # A line at the start of the program, an hour ago, is no log.
        ((1, 3_590), set()),
        ((1, 1, 3_590), {2}),
        # A rank that has written is compared with the other one, also of two.
        ((1, 900), {1}),
        ((900, 1), {0}),
        ((800, 900), set()),
        # Half of them hang.
        ((1, 1, 900, 900), {2, 3}),
        # Most write, and one never did.
        ((1, 1, None), {2}),
        ((900,), set()),
        ((), set()),
    ],
)
def test_ranks_are_silent_when_most_others_write_much_more_often(ages_s, expected) -> None:
    assert silent(*ages_s) == expected


def test_a_short_pause_is_no_silence() -> None:
    assert silent(0.1, 0.1, LEAST.total_seconds() - 1) == set()
    assert silent(0.1, 0.1, LEAST.total_seconds() + 1) == {2}


def test_a_line_from_a_clock_ahead_counts_as_written_now() -> None:
    assert silent(-30, -30, 120) == {2}
