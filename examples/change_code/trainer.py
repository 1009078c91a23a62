"""An actor whose code is changed while its job runs."""

from __future__ import annotations

from monarch.actor import Actor, endpoint
from steps import RATE


class Trainer(Actor):
    """A trainer that returns its learning rate."""

    @endpoint
    def rate(self) -> float:
        """Return the learning rate."""
        return RATE
