"""The runners of short jobs on nodes without machines: a few threads post all their frames."""

from __future__ import annotations

import gzip
import heapq
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench.logs.ground import LogGround, Talker
from bench.logs.posting import Connection
from bench.measure import median, percentile, say

if TYPE_CHECKING:
    from jobs.backends.fake.backend import FakeBackend

LOOK_EVERY_S = 0.1
# Real runners post at once. One thread is late by itself where a request takes some 20 ms.
POSTERS = 8
# The portal closes connections that are idle for five seconds: after this many a new one is made.
_SILENT_S = 4.0
# An end is reported this long after the planned one: what is due at a time is sent only past it.
_AFTER_S = 0.01


# The end time, the attempt's id, its cluster, the runner, and the acknowledged sequence numbers.
_Ending = tuple[float, int, str, "Talker", dict[int, int]]


class _Runners(threading.Thread):
    """A thread that posts the first frames of each attempt once its nodes are up, then the last."""

    def __init__(self, ground: LogGround, fake: FakeBackend, run_s: float, after: int) -> None:
        super().__init__(daemon=True)
        self._ground, self._fake, self._run_s = ground, fake, run_s
        self._newest = after
        self._posters, self._mine = ThreadPoolExecutor(POSTERS), threading.local()
        self._lock = threading.Lock()
        self._ending: list[_Ending] = []
        self.stop = threading.Event()
        self.failures: list[Exception] = []
        # The delay of each post after what it reports: the portal's measured lag includes it.
        self.late_s: list[float] = []

    def run(self) -> None:
        """Report the begin and end of the programs until the thread is stopped."""
        from django.db import connection  # noqa: PLC0415

        try:
            waiting: dict[int, tuple[str, Talker]] = {}
            while not self.stop.wait(LOOK_EVERY_S):
                waiting.update(self._new())
                for pk in [pk for pk, each in waiting.items() if self._has_begun(*each)]:
                    self._posters.submit(self._posted, self._begin, *waiting.pop(pk))
                for due in self._due():
                    self._posters.submit(self._posted, self._end, *due)
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits for it
            self.failures.append(error)
        finally:
            self._posters.shutdown()
            connection.close()

    def _posted(self, what: Callable[..., None], *of: Any) -> None:
        if self.failures:
            return
        try:
            what(*of)
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits for it
            self.failures.append(error)
            self.stop.set()

    def _new(self) -> Iterator[tuple[int, tuple[str, Talker]]]:
        from jobs.attempt_tokens import attempt_token  # noqa: PLC0415
        from jobs.models import Attempt  # noqa: PLC0415

        rows = Attempt.objects.filter(pk__gt=self._newest).order_by("pk")
        for pk, job, number, cluster in rows.values_list("pk", "job_id", "number", "cluster__name"):
            self._newest = pk
            yield pk, (cluster, Talker(job, pk, attempt_token(job, number)))

    def _has_begun(self, cluster: str, talker: Talker) -> bool:
        from jobs.backends.base import ClusterPhase  # noqa: PLC0415

        seen = self._fake.observe(cluster, attempt_id=talker.attempt_id)
        # The attempt has ended: this thread was late.
        return seen.phase in {ClusterPhase.UP, ClusterPhase.ENDED}

    def _begin(self, cluster: str, talker: Talker) -> None:
        frames = self._fake.frames(cluster, attempt_id=talker.attempt_id)
        began_at = json.loads(frames[0])["t"]
        # The program has been running since then, not since this thread looked.
        ends_at = began_at + self._run_s + _AFTER_S
        self.late_s.append(time.time() - began_at)
        acked = self._post(talker, frames)
        # A late post may include the end: the cluster may be released before a second post.
        if not any(json.loads(frame)["kind"] == "end" for frame in frames):
            with self._lock:
                # The number of the attempt decides between two that end at one moment.
                heapq.heappush(self._ending, (ends_at, talker.attempt_id, cluster, talker, acked))

    def _due(self) -> Iterator[_Ending]:
        with self._lock:
            while self._ending and self._ending[0][0] <= time.time():
                yield heapq.heappop(self._ending)

    def _end(self, due: float, _: int, cluster: str, talker: Talker, acked: dict[int, int]) -> None:
        self.late_s.append(time.time() - due)
        self._post(talker, self._fake.frames(cluster, acked, attempt_id=talker.attempt_id))

    def _post(self, talker: Talker, frames: list[bytes]) -> dict[int, int]:
        mine, now_s = self._mine, time.monotonic()
        if now_s - getattr(mine, "used_s", -math.inf) > _SILENT_S:
            mine.connection = Connection(self._ground)
        mine.used_s = now_s
        acknowledged = mine.connection.post(talker, gzip.compress(b"".join(frames), 1))
        return {int(rank): number for rank, number in acknowledged.items()}


@contextmanager
def speaking(ground: LogGround, fake: FakeBackend, run_s: float) -> Iterator[None]:
    """Act as the runners of attempts made in the block; each program runs for `run_s`."""
    from jobs.models import Attempt  # noqa: PLC0415

    newest = Attempt.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    runners = _Runners(ground, fake, run_s, newest)
    runners.start()
    try:
        yield
    finally:
        runners.stop.set()
        runners.join()
        if runners.failures:
            raise runners.failures[0]
        late_s = runners.late_s
        half, nearly_all = median(late_s), percentile(late_s, 99)
        say(f"  their runners spoke late by: median {half:.2f} s, p99 {nearly_all:.2f} s")
