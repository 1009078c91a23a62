"""The bare parts of a pass: as many rows read, sorted and compared, and nothing decided."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

Row = tuple[Any, ...]  # as of `select_rows`
SELECT, SORT, COMPARE = "a SELECT", "a sort", "a comparison"


def select_rows() -> tuple[float, list[Row]]:
    """Read what orders queued jobs; returns the seconds and the rows in a random order."""
    from jobs.models import Job  # noqa: PLC0415 - only after the set-up
    from jobs.statuses import JobStatus  # noqa: PLC0415

    queued = Job.objects.filter(status=JobStatus.QUEUED).order_by()
    columns = ("pk", "project_id", "submitted_by_id", "priority", "created_at", "num_nodes")
    began = time.perf_counter()
    rows: list[Row] = list(queued.values_list(*columns, "duration_s", "wait_reason", "message"))
    took = time.perf_counter() - began
    # Rows in the order of their age would be sorted already.
    random.Random(16).shuffle(rows)
    return took, rows


def sort_s(rows: Sequence[Row]) -> float:
    """Return the seconds of a sort by priority, age and number."""
    began = time.perf_counter()
    sorted(rows, key=lambda row: (-row[3], row[4], row[0]))
    return time.perf_counter() - began


def compare_s(rows: Sequence[Row]) -> float:
    """Return the seconds of a look whether what each job is shown has changed."""
    known = {row[0]: (row[7], row[8]) for row in rows}
    began = time.perf_counter()
    changed = [row[0] for row in rows if known[row[0]] != (row[7], row[8])]
    took = time.perf_counter() - began
    if changed:
        raise RuntimeError(f"{len(changed)} rows differ from themselves")
    return took
