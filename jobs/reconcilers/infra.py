"""Query backends for clouds and free GPUs, while a user has the infrastructure page open."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

from jobs.backends import registry
from jobs.backends.base import ClusterKeeper
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake_later
from jobs.errors import BackendError, StillLookingError
from jobs.ground import clock
from jobs.live import infra_cache

log = logging.getLogger(__name__)

ASK_AGAIN_S = 2.0


def step() -> None:
    """Query every backend whose last answer is old. Safe to repeat."""
    if not infra_cache.is_wanted():
        return
    with exclusive(LockSpace.INFRA) as alone:
        if not alone:
            return
        is_waiting = [_ask(name, backend) for name, backend in registry.keeping().items()]
    if any(is_waiting):
        wake_later("infra", delay_s=ASK_AGAIN_S)


def _ask(name: str, backend: ClusterKeeper) -> bool:
    """Whether an answer is still on its way."""
    known = infra_cache.kept(name) or {}
    now = clock.now().timestamp()
    if now - known.get("at", 0.0) < infra_cache.FRESH_S:
        return False
    # Both are requested at once, and each is shown as soon as it arrives.
    clouds, gpus = _part(name, backend.clouds), _part(name, backend.gpus)
    is_waiting = clouds is None or gpus is None
    content = {
        "clouds": clouds or known.get("clouds"),
        "gpus": gpus or known.get("gpus"),
        # The time when both had arrived.
        "at": known.get("at", 0.0) if is_waiting else now,
    }
    infra_cache.keep(name, content)
    return is_waiting


def _part(name: str, ask: Any) -> dict[str, Any] | None:
    """Return the rows, or why there are none; None while the backend has not answered."""
    try:
        return {"rows": [asdict(row) for row in ask()], "problem": ""}
    except StillLookingError:
        return None
    except BackendError as error:
        log.warning("no answer: %s", error, extra={"action": "infra", "backend": name})
        return {"rows": [], "problem": error.message}
