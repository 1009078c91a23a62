"""Asks backends for their clouds and free GPUs, while somebody looks at the page of them."""

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
    """Ask every backend whose last answer is old. Safe to repeat."""
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
    # Both are asked for at once, and each is shown as soon as it is there.
    clouds, gpus = _part(name, backend.clouds), _part(name, backend.gpus)
    is_waiting = clouds is None or gpus is None
    content = {
        "clouds": clouds or known.get("clouds"),
        "gpus": gpus or known.get("gpus"),
        # Of the moment when both were there.
        "at": known.get("at", 0.0) if is_waiting else now,
    }
    infra_cache.keep(name, content)
    return is_waiting


def _part(name: str, ask: Any) -> dict[str, Any] | None:
    """The rows, or why there are none; None while it is looked for."""
    try:
        return {"rows": [asdict(row) for row in ask()], "problem": ""}
    except StillLookingError:
        return None
    except BackendError as error:
        log.warning("no answer: %s", error, extra={"action": "infra", "backend": name})
        return {"rows": [], "problem": error.message}
