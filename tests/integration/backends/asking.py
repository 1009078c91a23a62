"""Queries of a backend like the reconcilers', repeated until there is an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from jobs.backends.base import ClusterPhase, ClusterView, LaunchRequest, Leftovers
from jobs.errors import NotYetGoneError, StillLookingError
from tests.integration.backends.rigs import GRACE_S, Rig
from tests.runner_harness import wait_until

Answer = TypeVar("Answer")
LOOK_S = 0.05


def retried(rig: Rig, ask: Callable[[], Answer]) -> Answer:
    """Return the answer, once the backend has one."""
    deadline = time.monotonic() + rig.patience_s
    while time.monotonic() < deadline:
        with suppress(NotYetGoneError, StillLookingError):
            return ask()
        time.sleep(LOOK_S)
    return ask()


def launch(rig: Rig, request: LaunchRequest) -> None:
    """Launch it."""
    retried(rig, lambda: rig.backend.launch(request))


def view_of(rig: Rig, request: LaunchRequest) -> ClusterView:
    """Return what currently exists of an attempt."""
    name, attempt = request.cluster_name, request.attempt_id
    return retried(rig, lambda: rig.backend.observe(name, attempt_id=attempt))


def wait_for(rig: Rig, request: LaunchRequest, phase: ClusterPhase) -> None:
    """Wait until the attempt is in `phase`."""
    wait_until(lambda: view_of(rig, request).phase is phase, rig.patience_s)


def phases_until(rig: Rig, request: LaunchRequest, last: ClusterPhase) -> Iterator[ClusterPhase]:
    """Yield every phase that is seen until it is `last`."""
    deadline = time.monotonic() + rig.patience_s
    while (phase := view_of(rig, request).phase) is not last:
        assert time.monotonic() < deadline, phase
        yield phase


def stop(rig: Rig, request: LaunchRequest) -> None:
    """Have it end, once."""
    name, attempt = request.cluster_name, request.attempt_id
    retried(rig, lambda: rig.backend.stop(name, GRACE_S, attempt_id=attempt))


def stop_until_ended(rig: Rig, request: LaunchRequest) -> None:
    """Have it end, again and again until it has."""

    def has_ended() -> bool:
        stop(rig, request)
        return view_of(rig, request).phase is ClusterPhase.ENDED

    wait_until(has_ended, rig.patience_s)


def leftovers(rig: Rig, request: LaunchRequest) -> Leftovers:
    """Return the leftovers of the attempt's runner."""
    name, attempt = request.cluster_name, request.attempt_id
    return retried(rig, lambda: rig.backend.leftovers(name, attempt_id=attempt))


def tear_down(rig: Rig, name: str) -> None:
    """Give everything back."""
    retried(rig, lambda: rig.backend.tear_down(name))
