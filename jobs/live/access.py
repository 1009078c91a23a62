"""Permission of a stream's reader to see its content, checked again for as long as it lasts."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary

from django.contrib.auth import get_user
from django.http import HttpRequest

from jobs.live.channel import rights_topic

# How long a reader who has lost the right to look may go on, if the hint at it was lost.
CHECKED_EVERY_S = 30.0


class _Right:
    """A reader's permission, and when it was last checked."""

    def __init__(self) -> None:
        # Streams that were opened together are not checked together.
        self.checked_at = time.monotonic() - random.uniform(0, CHECKED_EVERY_S / 2)  # noqa: S311
        self.lock = threading.Lock()


# Those of open streams.
_rights: WeakValueDictionary[Hashable, _Right] = WeakValueDictionary()


class Access:
    """A periodic call of `check`, which raises a PortalError when the permission is lost.

    `key` is the reader and the object: all streams with the same one are checked once. `user_id`
    is the reader: a hint at their rights makes the next check due at once.
    """

    def __init__(self, check: Callable[[], object], key: Hashable, user_id: int = 0) -> None:
        self._check = check
        self.topic = rights_topic(user_id)
        self._right = _rights.setdefault(key, _Right())

    @property
    def is_due(self) -> bool:
        """Whether it is time to check."""
        return time.monotonic() - self._right.checked_at > CHECKED_EVERY_S

    def expire(self) -> None:
        """Make the next check due: the rights of the reader may have changed."""
        self._right.checked_at = -math.inf

    def confirm(self) -> None:
        """Check, unless that was done just now or another stream is about it."""
        if not self._right.lock.acquire(blocking=False):
            return
        try:
            if self.is_due:
                self._check_now()
        finally:
            self._right.lock.release()

    def _check_now(self) -> None:
        # Stored before the check, so that an `expire` during the check is not overwritten.
        self._right.checked_at = time.monotonic()
        try:
            self._check()
        except Exception:
            self.expire()
            raise


def read_session_again(request: HttpRequest) -> None:
    """Let `request` be of whom its session is now: perhaps it has ended, or its user is barred."""
    request.session = type(request.session)(request.session.session_key)
    request.user = get_user(request)
