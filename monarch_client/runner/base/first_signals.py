"""Signals in a runner's first moments: they wait until somebody knows what to do about them.

Whom one kills before that has crashed, to all appearances, and its peers would wait for it.
"""

from __future__ import annotations

import signal

# By these a runner is told to end.
TOLD_BY = (signal.SIGTERM, signal.SIGINT)


def hold_signals() -> None:
    """Keep what comes for later; a process forked meanwhile does the same."""
    signal.pthread_sigmask(signal.SIG_BLOCK, TOLD_BY)


def take_signals() -> None:
    """Take what has come, and what comes. Before any program is started: it inherits the mask."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TOLD_BY)
