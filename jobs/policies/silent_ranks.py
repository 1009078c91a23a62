"""The ranks of a running job that write nothing while most others do: probably stuck. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from statistics import median

# Shorter silences are normal, such as a checkpoint that one rank writes.
LEAST = timedelta(seconds=60)
# How many times as long as the median of all ranks.
_TIMES_THE_MEDIAN = 5


def silent_ranks(last: Mapping[int, datetime], now: datetime) -> frozenset[int]:
    """Return the ranks that have been silent much longer than most; `last`: when each wrote last.

    Where only some ranks write at all, as in programs that log on rank 0, none is an exception.
    """
    if not last:
        return frozenset()
    silences = {rank: max(timedelta(), now - at) for rank, at in last.items()}
    usual_s = median(silence.total_seconds() for silence in silences.values())
    bound = max(LEAST, timedelta(seconds=usual_s * _TIMES_THE_MEDIAN))
    return frozenset(rank for rank, silence in silences.items() if silence > bound)
