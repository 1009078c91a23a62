"""The pauses between tries of one thing: they grow up to a limit, and differ between many.

Each loop that tries again has a `Retry`. It decides how long to wait, and when it has been tried
for long enough; what is tried, and which failures are final, is the loop's own. Not for a count of
failures that a row stores, as that of attempts (`jobs/policies/endings.py`). Standard library,
since programs on nodes use it too.
"""

from __future__ import annotations

import math
import random
import time

# A pause is up to a quarter shorter: many that lose one portal do not come back at once.
_SHORTEST = 0.75


class Retry:
    """A series of tries, of which the last one failed or none was made.

    The first pause is at most `first_s`, each next one `growth` times longer, up to `longest_s`.
    The series may take `limit_s` in all.
    """

    def __init__(
        self,
        first_s: float,
        longest_s: float,
        *,
        growth: float = 2.0,
        limit_s: float = math.inf,
    ) -> None:
        self._first_s = self._pause_s = first_s
        self._longest_s = longest_s
        self._growth = growth
        self._ends_at = time.monotonic() + limit_s

    @property
    def is_over(self) -> bool:
        """Whether the next try would come after the limit."""
        return time.monotonic() + self._pause_s > self._ends_at

    def succeeded(self) -> None:
        """Begin with the shortest pause again."""
        self._pause_s = self._first_s

    def next_pause_s(self, longest_s: float = math.inf) -> float:
        """Return how long to wait before the next try; `longest_s` is the limit of this failure.

        After many failures with a low limit, one with a higher limit begins at the low one.
        """
        limit_s = min(self._longest_s, longest_s)
        pause_s = min(self._pause_s, limit_s)
        self._pause_s = min(pause_s * self._growth, limit_s)
        return pause_s * random.uniform(_SHORTEST, 1.0)  # noqa: S311 - no secret
