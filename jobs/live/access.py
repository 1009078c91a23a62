"""Whether a stream's reader may still see what it shows: asked again for as long as it lasts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from django.contrib.auth import get_user
from django.http import HttpRequest

# How long a reader who has lost the right to look may go on.
CHECKED_EVERY_S = 30.0


class Access:
    """Calls `check` now and then; it raises a PortalError when the right is lost."""

    def __init__(self, check: Callable[[], object]) -> None:
        self._check = check
        # Streams that were opened together are not checked together.
        self._checked_at = time.monotonic() - random.uniform(0, CHECKED_EVERY_S / 2)  # noqa: S311

    @property
    def is_due(self) -> bool:
        """Whether it is time to check."""
        return time.monotonic() - self._checked_at > CHECKED_EVERY_S

    def confirm(self) -> None:
        """Check, unless that was done a moment ago."""
        if self.is_due:
            self._check()
            self._checked_at = time.monotonic()


def read_session_again(request: HttpRequest) -> None:
    """Let `request` be of whom its session is now: perhaps it has ended, or its user is barred."""
    request.session = type(request.session)(request.session.session_key)
    request.user = get_user(request)
