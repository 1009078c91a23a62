"""How often, and how long, nodes of a mesh did not answer: when that makes a loss certain."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Callable, Collection, Iterable

# Of the text that shows a loss.
_MOST_WHY = 2000


class Enough(NamedTuple):
    """How often in a row makes certain, and how long after the first time."""

    times: int
    span_s: float


# A driver that has ended is heard of soon, and differently. A host has three seconds for its
# answer, a proc a fifth of one: not much on a busy machine, so it is given longer to come back.
ENOUGH_OF_ROOT, ENOUGH_OF_HOST, ENOUGH_OF_PROC = Enough(3, 4.0), Enough(2, 2.0), Enough(3, 4.0)
# After Monarch itself has reported a loss, what does not answer is believed to be it, so long.
_BELIEVED_S = 10.0


class Misses:
    """The nodes that did not answer when they were last asked."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._believed_until = float("-inf")
        self._counts: dict[str, int] = {}
        self._first_at: dict[str, float] = {}
        self._evidence: dict[str, str] = {}
        self._certain: set[str] = set()

    @property
    def is_believed(self) -> bool:
        """Whether somebody who knows has just said that something is lost."""
        return self._now() < self._believed_until

    @property
    def is_uncertain(self) -> bool:
        """Whether a node did not answer, but not yet often enough."""
        return any(each not in self._certain for each in self._counts)

    def believe(self) -> None:
        """Somebody who knows says that something is lost."""
        self._believed_until = self._now() + _BELIEVED_S

    def is_suspect(self, reference: str) -> bool:
        """Whether another question is needed to know of this node."""
        return reference in self._counts and reference not in self._certain

    def note(self, reference: str, enough: Enough) -> bool:
        """A node was missed once more; whether that is often enough by now."""
        now = self._now()
        count = self._counts[reference] = self._counts.get(reference, 0) + 1
        lasts_s = now - self._first_at.setdefault(reference, now)
        if self.is_believed or (count >= enough.times and lasts_s >= enough.span_s):
            self._certain.add(reference)
        return reference in self._certain

    def forget(self, reference: str) -> None:
        """It answered, or is of no interest: nothing was missed."""
        self._certain.discard(reference)
        for known in (self._counts, self._first_at, self._evidence):
            known.pop(reference, None)

    def clear(self) -> None:
        """Who was asked is gone: its silence tells of nobody."""
        self.keep(())

    @property
    def are_any(self) -> bool:
        """Whether a node did not answer when it was last asked."""
        return bool(self._counts)

    def keep(self, references: Collection[str]) -> None:
        """Forget all others: nobody names them any more."""
        for each in [each for each in self._counts if each not in references]:
            self.forget(each)

    def forget_suspects(self, references: Iterable[str]) -> None:
        """Nobody can ask these for now: they are neither there nor lost."""
        for each in references:
            if self.is_suspect(each):
                self.forget(each)

    def evidence(self, reference: str, words: str) -> str:
        """What showed it, as it stood when it became certain."""
        if reference not in self._evidence:
            at = time.strftime("%H:%M:%S", time.gmtime())
            self._evidence[reference] = f"GET /v1/{reference} at {at} UTC, once more: {words}"
        return self._evidence[reference][:_MOST_WHY]
