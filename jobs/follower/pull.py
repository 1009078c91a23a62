"""A pull carrier: one thread that fetches one attempt's frames and stores them.

Storing is safe to repeat, so it does no harm that a thread goes on for a moment after its lease
was lost; `jobs.follower.loop` keeps the lease, and ends the thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator

from django.db import DatabaseError, connections

from jobs.actions.ingest.store_frames import batches, store_batch
from jobs.backends import registry
from jobs.backends.base import PullingBackend
from jobs.errors import BackendError, FramesPostponedError
from jobs.ground.disk_space import require_room_for_frames
from jobs.models import Attempt
from monarch_client.crash_points import reach
from monarch_client.runner.base.retry import Retry

log = logging.getLogger(__name__)

PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
# A backend answers or yields within 20 seconds; a thread that hangs longer loses its lease.
STUCK_AFTER_S = 30.0
# The interval of a runner that pushes.
SIGN_OF_LIFE_S = 4.0


class PullCarrier(threading.Thread):
    """A thread that follows one attempt until its verdict, or until `stop`."""

    def __init__(self, attempt_id: int) -> None:
        super().__init__(name=f"pull-{attempt_id}", daemon=True)
        self.attempt_id = attempt_id
        self._stopping = threading.Event()
        self._moved_at = time.monotonic()
        self._pause_s = PAUSE_S
        self._retry = Retry(2 * PAUSE_S, LONGEST_PAUSE_S)
        self._reported_at = time.monotonic()

    @property
    def is_stuck(self) -> bool:
        """Whether the backend has not come back for too long."""
        return time.monotonic() - self._moved_at > STUCK_AFTER_S

    def stop(self) -> None:
        """End soon; whatever was fetched is stored or left to the next."""
        self._stopping.set()

    def run(self) -> None:
        """Fetch and store, again and again."""
        try:
            while not self._stopping.is_set() and self._carries_on():
                self._stopping.wait(self._pause_s)
        except Exception:
            # The next look starts another thread.
            log.exception("pull carrier failed", extra=self._context)
        finally:
            connections.close_all()

    def _carries_on(self) -> bool:
        """Carry what is there now. False: the attempt is over."""
        try:
            is_open = self._carry()
            self._pause_s = PAUSE_S
            self._retry.succeeded()
        except (BackendError, DatabaseError, FramesPostponedError) as error:
            log.warning("not carried: %s", error, extra=self._context)
            is_open = True
            self._pause_s = self._retry.next_pause_s()
        finally:
            # Many threads share a small pool: none keeps a connection while it waits.
            connections.close_all()
            self._moved_at = time.monotonic()
        return is_open

    def _carry(self) -> bool:
        attempts = Attempt.objects.select_related("cluster", "log_head")
        attempt = attempts.filter(pk=self.attempt_id, ended_at=None).first()
        if attempt is None or attempt.cluster is None:
            return False
        require_room_for_frames()
        backend = registry.pulling()[attempt.cluster.backend_name]
        self._fetch(backend, attempt)
        return True

    def _fetch(self, backend: PullingBackend, attempt: Attempt) -> None:
        assert attempt.cluster is not None  # noqa: S101 - looked at by the caller
        after = {int(rank): seq for rank, seq in attempt.log_head.acked.items()}
        connections.close_all()
        frames = backend.frames(attempt.cluster.name, after, attempt_id=attempt.pk)
        for batch in batches(self._noted(frames)):
            if batch:
                reach("follow.read")
                # A stream may last as long as its attempt.
                require_room_for_frames()
            elif not self._is_sign_of_life_due():
                continue
            store_batch(attempt, batch)
            self._reported_at = time.monotonic()
            connections.close_all()

    def _is_sign_of_life_due(self) -> bool:
        """Whether to report that the runner is alive: its stream is open, although silent."""
        return time.monotonic() - self._reported_at > SIGN_OF_LIFE_S

    def _noted(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        try:
            for frame in frames:
                self._moved_at = time.monotonic()
                if self._stopping.is_set():
                    return
                yield frame
        finally:
            # The sender must learn that the stream is no longer read.
            close = getattr(frames, "close", None)
            if close is not None:
                close()

    @property
    def _context(self) -> dict[str, object]:
        return {"action": "pull", "attempt": self.attempt_id}
