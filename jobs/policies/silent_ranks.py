"""The ranks of a running job that write nothing while most others do: probably stuck. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from statistics import median

# Shorter silences are normal, such as a checkpoint that one rank writes.
LEAST = timedelta(seconds=60)
# How many times as long as the median of the other ranks.
_TIMES_THE_MEDIAN = 5


def silent_ranks(
    last: Mapping[int, datetime | None], begun: datetime, now: datetime
) -> frozenset[int]:
    """Return the ranks that have been silent much longer than most others.

    `last`: when each wrote last; None: never. Where only some ranks write, but for what libraries
    print soon after `begun`, as in programs that log on rank 0, none is an exception.
    """
    if len(last) < 2:  # noqa: PLR2004 - there are no others
        return frozenset()
    silences = {rank: max(timedelta(), now - (at or begun)) for rank, at in last.items()}
    ordered = sorted(silences.values())
    # Only the longer half can be silent: without one of these, the median is that without the last.
    bound = _bound(ordered[:-1])
    # Of two ranks one may write nothing by intention: a rank that logs nothing counts as usual.
    bound_of_mute = _bound(ordered)
    mute = {rank for rank, at in last.items() if at is None or at - begun <= LEAST}
    return frozenset(
        rank
        for rank, silence in silences.items()
        if silence > (bound_of_mute if rank in mute else bound)
    )


def _bound(silences: list[timedelta]) -> timedelta:
    usual_s = median(silence.total_seconds() for silence in silences)
    return max(LEAST, timedelta(seconds=usual_s * _TIMES_THE_MEDIAN))
