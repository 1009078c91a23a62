"""Correction of times that a node with a wrong clock reported, by its present time. Pure."""

from __future__ import annotations

import math

from jobs.logs.frames import LATEST_TIME, Frame

# A request is on its way for at most so long: a smaller difference proves no wrong clock.
TOLERATED_S = 30.0


def put_right(frames: list[Frame], *, sent_at: float, received_at: float) -> None:
    """Shift the times of `frames` by as much as the sender's clock was wrong when it sent them.

    `received_at`: when the head of their request came, for a body may be slow.
    """
    wrong_s = received_at - sent_at
    if not math.isfinite(wrong_s) or abs(wrong_s) <= TOLERATED_S:
        return
    for frame in frames:
        frame["t"] = min(max(0.0, frame["t"] + wrong_s), LATEST_TIME - 1.0)
