"""Count the missing answers of mesh nodes, and decide when a loss is certain."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Callable, Collection, Iterable

# Of the text that shows a loss.
_MOST_WHY = 2000


class Threshold(NamedTuple):
    """A threshold: misses in a row, and the seconds that they must span."""

    times: int
    span_s: float


# The end of a driver is reported soon in another way. A host has three seconds for its answer, a
# proc a fifth of one, which is short on a busy machine: so a proc may miss more answers.
ROOT_THRESHOLD, HOST_THRESHOLD, PROC_THRESHOLD = (
    Threshold(3, 4.0),
    Threshold(2, 2.0),
    Threshold(3, 4.0),
)
# Seconds after a report of Monarch in which a node that does not answer counts as lost.
_TRUSTED_S = 10.0


class Misses:
    """The nodes that did not answer their last request."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._trusted_until = float("-inf")
        self._counts: dict[str, int] = {}
        self._first_at: dict[str, float] = {}
        self._evidence: dict[str, str] = {}
        self._certain: set[str] = set()

    @property
    def has_reported_loss(self) -> bool:
        """Whether Monarch has just reported a loss."""
        return self._now() < self._trusted_until

    @property
    def is_uncertain(self) -> bool:
        """Whether a node has missed an answer and is not yet certainly lost."""
        return any(each not in self._certain for each in self._counts)

    def trust_reported_loss(self) -> None:
        """Treat nodes that do not answer as lost, since Monarch has just reported a loss."""
        self._trusted_until = self._now() + _TRUSTED_S

    def is_suspect(self, reference: str) -> bool:
        """Whether another request is needed to decide on this node."""
        return reference in self._counts and reference not in self._certain

    def note(self, reference: str, threshold: Threshold) -> bool:
        """Count one more miss of a node; return whether its loss is now certain."""
        now = self._now()
        count = self._counts[reference] = self._counts.get(reference, 0) + 1
        lasts_s = now - self._first_at.setdefault(reference, now)
        if self.has_reported_loss or (count >= threshold.times and lasts_s >= threshold.span_s):
            self._certain.add(reference)
        return reference in self._certain

    def forget(self, reference: str) -> None:
        """Reset the misses of a node that answered or no longer matters."""
        self._certain.discard(reference)
        for known in (self._counts, self._first_at, self._evidence):
            known.pop(reference, None)

    def clear(self) -> None:
        """Reset all misses: the admin itself has ended, so they prove nothing."""
        self.keep(())

    @property
    def are_any(self) -> bool:
        """Whether a node did not answer its last request."""
        return bool(self._counts)

    def keep(self, references: Collection[str]) -> None:
        """Forget the nodes that are not in `references`."""
        for each in [each for each in self._counts if each not in references]:
            self.forget(each)

    def forget_suspects(self, references: Iterable[str]) -> None:
        """Reset uncertain misses of nodes that cannot be requested for now."""
        for each in references:
            if self.is_suspect(each):
                self.forget(each)

    def evidence(self, reference: str, message: str) -> str:
        """Return the evidence of a loss, from the time when it became certain."""
        if reference not in self._evidence:
            at = time.strftime("%H:%M:%S", time.gmtime())
            self._evidence[reference] = f"GET /v1/{reference} at {at} UTC, once more: {message}"
        return self._evidence[reference][:_MOST_WHY]
