"""The bounds on a process's streams, in all and of one user, against a flood of them.

Each open stream costs memory and a look every few seconds. A slot is given back when its stream
ends, and also when the stream never began.
"""

from __future__ import annotations

from collections import Counter
from threading import RLock

from django.conf import settings

from jobs.errors import PortalBusyError, TooManyStreamsError


class StreamSlots:
    """The streams that are open now."""

    def __init__(self) -> None:
        # A place may be given back by the garbage collector, within any other call.
        self._lock = RLock()
        self._of_user: Counter[int] = Counter()
        self.taken = 0

    def take(self, user_id: int) -> StreamSlot:
        """Take a slot for one more stream of that user.

        TooManyStreamsError: the user has enough. PortalBusyError: the process has.
        """
        with self._lock:
            self.refuse_when_full()
            if self._of_user[user_id] >= settings.MPORTAL_STREAMS_PER_USER:
                raise TooManyStreamsError
            self._of_user[user_id] += 1
            self.taken += 1
        return StreamSlot(self, user_id)

    def refuse_when_full(self) -> None:
        """Raise PortalBusyError when all slots are taken. Costs nothing: call this first."""
        if self.taken >= settings.MPORTAL_STREAMS:
            raise PortalBusyError

    def give_back(self, user_id: int) -> None:
        """Give back the slot of one stream of that user."""
        with self._lock:
            self.taken -= 1
            self._of_user[user_id] -= 1
            if not self._of_user[user_id]:
                del self._of_user[user_id]


class StreamSlot:
    """Held by the body of one stream, as a context."""

    def __init__(self, slots: StreamSlots, user_id: int) -> None:
        self._slots: StreamSlots | None = slots
        self._user_id = user_id

    def leave(self) -> None:
        """Give the place back; a second time is nothing."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.give_back(self._user_id)

    def __enter__(self) -> StreamSlot:
        """Return the slot, which is taken already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.leave()

    __del__ = leave


STREAM_SLOTS = StreamSlots()
