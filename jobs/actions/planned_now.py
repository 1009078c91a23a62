"""The plan of this moment, for whoever asks why a job waits or what the queue looks like."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jobs.actions.queue_snapshot import load_snapshot
from jobs.backends import registry
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import Decision, Snapshot

# Many who look at a long queue share one plan for so long.
LONG_QUEUE, REUSED_S = 2000, 5.0

_last: tuple[float, Snapshot, Sequence[Decision]] | None = None


def planned_now() -> tuple[Snapshot, Sequence[Decision]]:
    """A plan of this moment; of a long queue, which takes a while, one of some seconds ago."""
    global _last  # noqa: PLW0603 - one a process, replaced as a whole
    if _last is not None and time.monotonic() - _last[0] < REUSED_S:
        return _last[1], _last[2]
    snapshot = load_snapshot(registry.names())
    decisions = plan(snapshot)
    _last = (time.monotonic(), snapshot, decisions) if len(decisions) > LONG_QUEUE else None
    return snapshot, decisions
