"""Block the signals of a starting runner until its handlers are installed.

A runner that ends before that looks crashed, and its peers would wait for it.
"""

from __future__ import annotations

import signal

# The signals that request a runner to end.
END_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def hold_signals() -> None:
    """Block the signals, also in processes that are forked meanwhile."""
    signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)


def take_signals() -> None:
    """Unblock the signals. Call this before a program is started, which inherits the mask."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
