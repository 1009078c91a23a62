"""The process that imports SkyPilot and asks it: requests in on stdin, answers out on stdout.

A request is one line, {"id", "call", "args"}. At once comes {"id", "taken"}; then {"id", "value"}
or {"id", "error"}, or, from calls that yield, any number of {"id", "piece"} before {"id", "end"}.
Of those the reader says {"id", "more": n} for n pieces it has taken, and {"id", "close"} to end
them. Ends when stdin does, and when the process that started it does.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

from monarch_client.extras import named_extras
from monarch_client.skypilot.errors import StillBusyError
from monarch_client.skypilot.streams import WINDOW
from monarch_client.skypilot.translate import error_of

PR_SET_PDEATHSIG = 1
CALLS = "monarch_client.skypilot.launch"


class Answers:
    """A writer of answers: whole lines, one at a time, to where stdout was."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def write(self, number: int, **fields: Any) -> None:
        """Send one answer."""
        data = json.dumps({"id": number, **fields}, default=str).encode() + b"\n"
        with self._lock:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]


class Reader:
    """The reader of a call that yields: how many pieces it will take, and whether it is there."""

    def __init__(self) -> None:
        self._room = threading.Semaphore(WINDOW)
        self.is_closed = False

    def wait_for_room(self) -> bool:
        """Wait until one more piece may be sent; False if the reader has closed."""
        self._room.acquire()
        return not self.is_closed

    def more(self, pieces: int) -> None:
        """Note that so many have been taken."""
        self._room.release(pieces)

    def close(self) -> None:
        """Close the reader: no further piece is sent."""
        self.is_closed = True
        self._room.release()


class Child:
    """Carries out each request in a thread of its own."""

    def __init__(self, answers: Answers, calls: str = CALLS) -> None:
        self._answers = answers
        self._calls = calls
        self._readers: dict[int, Reader] = {}

    def on_line(self, line: bytes) -> None:
        """Take one request on, or a word about one."""
        message = json.loads(line)
        number = int(message["id"])
        if "call" in message:
            self._readers[number] = Reader()
            self._answers.write(number, taken=True)
            arguments = (number, str(message["call"]), dict(message["args"]))
            threading.Thread(target=self._carry_out, args=arguments, daemon=True).start()
            return
        reader = self._readers.get(number)
        if reader is not None and "more" in message:
            reader.more(int(message["more"]))
        elif reader is not None and "close" in message:
            reader.close()

    def _carry_out(self, number: int, name: str, args: dict[str, Any]) -> None:
        try:
            with named_extras():
                call = importlib.import_module(self._calls).CALLS[name]
            value = call(**args)
            if isinstance(value, Iterator):
                self._pass_on(number, value)
                self._answers.write(number, end=True)
            else:
                self._answers.write(number, value=value)
        except StillBusyError:
            self._answers.write(number, busy=True)
        except BaseException as raised:  # noqa: BLE001 - whatever it is, someone waits for it
            error = error_of(raised)
            if error.kind == "other":
                traceback.print_exc()
            self._answers.write(number, error=error.to_dict())
        finally:
            self._readers.pop(number, None)

    def _pass_on(self, number: int, pieces: Iterator[Any]) -> None:
        reader = self._readers[number]
        try:
            for piece in pieces:
                # None: nothing to report, but the moment to notice that the reader has left.
                if reader.is_closed or (piece is not None and not reader.wait_for_room()):
                    return
                if piece is not None:
                    self._answers.write(number, piece=piece)
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process when the one that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def keep_stdout() -> int:
    """Return a descriptor of the real stdout; all further output goes to stderr."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def main(calls: str = CALLS) -> None:
    """Serve until stdin ends."""
    end_with_parent(int(sys.argv[-1]))
    child = Child(Answers(keep_stdout()), calls)
    # The import takes seconds. Where it fails, each call tries again and reports it.
    threading.Thread(target=importlib.import_module, args=(calls,), daemon=True).start()
    for line in sys.stdin.buffer:
        child.on_line(line)
    # Threads may wait for SkyPilot for ever; what they requested goes on there without us.
    os._exit(0)


if __name__ == "__main__":
    main()
