"""Waiting for a condition with a deadline, instead of sleeping for a guess."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], object], *, timeout_s: float = 20) -> bool:
    """Whether `condition` came true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
