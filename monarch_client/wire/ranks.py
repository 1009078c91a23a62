"""Numbers of nodes in text, as pages and the command line show them."""

from __future__ import annotations

from collections.abc import Iterable


def rank_count(ranks: list[int]) -> str:
    """Return "node 2" or "12 nodes"."""
    return f"node {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} nodes"


def rank_ranges(ranks: Iterable[int]) -> str:
    """Return numbers in order with neighbors together: "0, 1, 3\u201313"."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    if len(run) <= 2:  # noqa: PLR2004 - no shorter as a range
        return ", ".join(map(str, run))
    return f"{run[0]}\u2013{run[-1]}"
