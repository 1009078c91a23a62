"""The current scheduling decisions, for readers of the queue and of why a job waits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeAlias

from jobs.backends import registry
from jobs.queueing.new_jobs import NewJobs
from jobs.queueing.snapshot import load_snapshot
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import Decision, Snapshot

Plan: TypeAlias = tuple[Snapshot, Sequence[Decision]]

# Seconds for which readers of a long queue share one plan.
LONG_QUEUE, REUSED_S = 2000, 5.0
# A short queue may take long, too. Of the processor: that others kept it busy says nothing.
LONG_PLAN_S = 0.3

_last: tuple[float, Snapshot, Sequence[Decision]] | None = None


def planned_now() -> Plan:
    """Return a snapshot with its decisions; if that takes long, those of at most 5 s ago."""
    global _last  # noqa: PLW0603 - one a process, replaced as a whole
    if _last is not None and time.monotonic() - _last[0] < REUSED_S:
        return _last[1], _last[2]
    began_s = time.thread_time()
    snapshot = load_snapshot(registry.names())
    decisions = plan(snapshot)
    is_dear = len(decisions) > LONG_QUEUE or time.thread_time() - began_s > LONG_PLAN_S
    _last = (time.monotonic(), snapshot, decisions) if is_dear else None
    return snapshot, decisions


def planned_with(new_jobs: NewJobs) -> Plan:
    """Return a snapshot that includes `new_jobs`, with its decisions."""
    snapshot = load_snapshot(registry.names(), new_jobs=new_jobs)
    return snapshot, plan(snapshot)
