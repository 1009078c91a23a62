"""The way of a driver to its hosts: how long either end may be silent before it counts as lost."""

from __future__ import annotations

import math
import time

from monarch_client.attaching.loss import current_alarm
from monarch_client.context.hosting.batches import AGENT_WAITS_S, DRIVER_WAITS_S
from monarch_client.runner.vocabulary.limits import MAX_AWAY_S

# After Monarch has reported the end of an agent, a silent host is taken for the one that has it.
_FAULT_S = 10.0


class Reach:
    """The limits of silence of one context.

    Within the job, silence means that a host has ended. A driver that is attached from outside of
    the job may lose its network for as long as its session lasts. The end of the session, of hosts
    of the job, or of an agent is then reported, and the short limit applies.
    """

    def __init__(self) -> None:
        self._alarm = current_alarm()
        self._fault_at = -math.inf

    @property
    def driver_silence_s(self) -> float:
        """The limit of a driver's silence to its agents, which is longer than the reverse."""
        return AGENT_WAITS_S if self._alarm is None else MAX_AWAY_S + AGENT_WAITS_S

    def host_silence_s(self) -> float:
        """Return how long a host may be silent now."""
        has_fault = time.monotonic() - self._fault_at < _FAULT_S
        if self._alarm is None or self._alarm.is_over or has_fault:
            return DRIVER_WAITS_S
        return float(MAX_AWAY_S)

    def note_fault(self) -> None:
        """Note that Monarch has reported the end of an agent."""
        self._fault_at = time.monotonic()
