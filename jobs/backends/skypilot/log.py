"""Frames that an attempt's runner prints, out of the log that SkyPilot keeps of its job."""

from __future__ import annotations

import queue
from collections.abc import Generator, Iterator, Mapping

from jobs.backends.skypilot.calls import SkyPilotCalls
from jobs.backends.skypilot.task import job_name_of
from jobs.backends.skypilot.views import error_of
from jobs.errors import BackendError, BackendUnavailableError
from monarch_client.skypilot.errors import SkyPilotError
from monarch_client.skypilot.log_frames import frames_beyond

# Then the reader hears that nothing came, and stores what did.
QUIET_S = 0.3


def frames_of(
    calls: SkyPilotCalls, cluster_name: str, attempt_id: int, after: Mapping[int, int]
) -> Generator[bytes, None, None]:
    """Yield the frames beyond `after` and those printed from now on; b"" if none came for a while.

    BackendUnavailableError: the log cannot be read now, or breaks off.
    """
    jobs = calls.jobs(cluster_name, job_name_of(attempt_id))
    if jobs is None:
        raise BackendError(f"{cluster_name} has no nodes from which to read a log.")
    if not jobs:
        raise BackendUnavailableError(f"{cluster_name} has no job of this attempt yet.")
    # The first one is the runner; a second one of the same name found it there, and ended.
    job_id = int(jobs[-1]["job_id"])
    yield from frames_beyond(
        lambda tail: _read(calls, cluster_name, job_id, tail), after, attempt_id
    )


def _read(calls: SkyPilotCalls, cluster_name: str, job_id: int, tail: int) -> Iterator[bytes]:
    try:
        with calls.stream("read_log", cluster_name=cluster_name, job_id=job_id, tail=tail) as log:
            while True:
                try:
                    piece = log.get(QUIET_S)
                except queue.Empty:
                    yield b""
                    continue
                if piece is None:
                    return
                yield str(piece).encode()
    except SkyPilotError as error:
        raise error_of(error) from error
