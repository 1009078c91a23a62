"""The ends of processes that a user's code wants: of a fork that it has made, and of its actor."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from contextlib import suppress
from typing import NoReturn

from monarch_client.context.streams import flush_streams


def end_fork(error: BaseException | None) -> NoReturn:
    """End a process that a call has forked, as Python would: the call's result is its parent's."""
    status = 0
    if isinstance(error, SystemExit):
        status = exit_status(error)
    elif error is not None:
        traceback.print_exception(error)
        status = 1
    flush_streams()
    os._exit(status)


def exit_status(error: SystemExit) -> int:
    """Return the status with which Python would exit; print the text that takes its place."""
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def end_actor(error: SystemExit, writing: threading.Lock) -> NoReturn:
    """End the process of an actor whose code exits: its calls in progress raise its death."""
    status = exit_status(error)
    with suppress(BaseException):
        atexit._run_exitfuncs()
    flush_streams()
    with writing:  # what another thread sends arrives as a whole
        os._exit(status)
