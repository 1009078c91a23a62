"""The lock under which no signal interrupts the driver."""

from __future__ import annotations

import signal

import pytest

from monarch_client.context.hosting.uninterrupted import DEFERRAL, UninterruptedLock


def test_a_signal_is_handled_when_the_lock_is_free_again() -> None:
    lock, seen = UninterruptedLock(), []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), lock:
        with lock:
            signal.raise_signal(signal.SIGINT)
            seen.append("inner")
        seen.append("outer")
    assert seen == ["inner", "outer"]
    DEFERRAL.restore_handlers()
    assert signal.getsignal(signal.SIGINT) is before
    with lock:
        seen.append("usable")
    DEFERRAL.restore_handlers()
