"""A shell or command on a node, with this process's terminal or pipes."""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from monarch_client.attaching.errors import AttachError
from monarch_client.gateway.node_session import NodeSession
from monarch_client.gateway.node_stream import NodeStream, open_node_stream
from monarch_client.runner.base.process_end import SAME_REQUEST_S
from monarch_client.runner.node_streams.messages import (
    DATA,
    END,
    ERRORS,
    EXIT,
    MAX_BYTES,
    SIGNAL,
    SIZE,
    TAKEN,
    WINDOW_BYTES,
    MessageError,
    end_of_shell,
    pack,
    receive_blocking,
    taken_bytes,
)

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_OUTPUTS = {DATA: _STDOUT, ERRORS: _STDERR}
# As a program that writes to a pipe which nobody reads.
_BROKEN_PIPE_CODE = 128 + signal.SIGPIPE
# As OpenSSH's.
_LEFT_CODE = 255
_FORWARDED = {signal.SIGINT: b"INT", signal.SIGQUIT: b"QUIT"}
_ROWS, _COLUMNS = 24, 80
# At the begin of a line it ends the session, as with OpenSSH: a program there may hang.
_LINE_ENDS, _ESCAPE, _LEAVE = b"\r\n", b"~"[0], b"."[0]


class ShellLostError(AttachError):
    """A shell whose connection broke, or whose job ended."""

    code = "shell_lost"


class RemoteShell:
    """A shell on a node; `run` is called once, in the main thread."""

    def __init__(
        self, session: NodeSession, rank: int, command: str, *, has_terminal: bool
    ) -> None:
        self._rank = rank
        self._has_terminal = has_terminal
        fields: dict[str, Any] = {"command": command or None}
        if has_terminal:
            rows, columns = _terminal_size()
            name = os.environ.get("TERM", "xterm")
            fields["terminal"] = {"name": name, "rows": rows, "columns": columns}
        self._stream: NodeStream = open_node_stream(session, rank, "shell", **fields)
        # What is sent, in order; None ends it. Signal handlers may add to it at any moment.
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._window = _Window()
        self._is_leaving = False
        self._terminated_at: float | None = None

    def run(self) -> int:
        """Pass input, output and signals on until the program ends; return its exit code.

        ShellLostError: the connection broke, or the job ended.
        """
        threads = [
            threading.Thread(target=work, daemon=True) for work in (self._send, self._read_input)
        ]
        with self._signals(), _raw_terminal(is_wanted=self._has_terminal):
            for thread in threads:
                thread.start()
            try:
                return self._receive()
            except BrokenPipeError:
                return _BROKEN_PIPE_CODE
            except MessageError as error:
                raise ShellLostError("The node sent what is no message of a shell.") from error
            finally:
                self._outbox.put(None)
                self._stream.close()

    def _receive(self) -> int:
        while (message := receive_blocking(self._stream.file)) is not None:
            kind, content = message
            if kind in _OUTPUTS:
                _write(_OUTPUTS[kind], content)
            elif kind == TAKEN:
                self._window.release(taken_bytes(content))
            elif kind == EXIT:
                return self._exit_code(end_of_shell(content))
        if self._is_leaving:
            return _LEFT_CODE
        raise ShellLostError(
            f"The connection to node {self._rank} was lost, and what ran in this shell was ended."
        )

    def _exit_code(self, end: dict[str, Any]) -> int:
        if "code" not in end:
            raise ShellLostError(f"{end['why'].rstrip('.')}, and this shell with it.")
        return int(end["code"])

    def _send(self) -> None:
        with suppress(OSError):
            while (content := self._outbox.get()) is not None:
                self._stream.socket.sendall(content)

    def _read_input(self) -> None:
        before = _LINE_ENDS
        while content := _read():
            if self._has_terminal and _leaves(before[-2:] + content):
                self._leave()
                return
            before += content
            before = before[-2:]
            self._window.take(len(content))
            self._outbox.put(pack(DATA, content))
        self._outbox.put(pack(END))

    def _leave(self) -> None:
        """End the session: the reader of the stream finds its end."""
        self._is_leaving = True
        with suppress(OSError):
            self._stream.socket.shutdown(2)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass signals of this process on while the block runs."""
        handlers: dict[signal.Signals, Any] = {
            number: lambda _number, _frame, name=name: self._outbox.put(pack(SIGNAL, name))
            for number, name in _FORWARDED.items()
        }
        if not self._has_terminal:
            handlers[signal.SIGTERM] = self._terminate
        else:
            # SIGTERM ends the session, since most shells ignore it.
            handlers[signal.SIGWINCH] = lambda *_: self._outbox.put(
                pack(SIZE, json.dumps(_terminal_size()).encode())
            )
        former = {number: signal.signal(number, each) for number, each in handlers.items()}
        try:
            yield
        finally:
            for number, each in former.items():
                signal.signal(number, each)

    def _terminate(self, number: int, _frame: FrameType | None) -> None:
        """Pass SIGTERM on; a later one ends the session, and with it a program that ignores it."""
        now = time.monotonic()
        if self._terminated_at is not None and now - self._terminated_at > SAME_REQUEST_S:
            sys.exit(128 + number)
        self._terminated_at = self._terminated_at or now
        self._outbox.put(pack(SIGNAL, b"TERM"))


class _Window:
    """The bytes that may be sent before the node has taken earlier ones."""

    def __init__(self) -> None:
        self._free = WINDOW_BYTES
        self._changed = threading.Condition()

    def take(self, count: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._free >= count)
            self._free -= count

    def release(self, count: int) -> None:
        with self._changed:
            self._free += count
            self._changed.notify()


def has_terminal() -> bool:
    """Whether a person types at this process."""
    return os.isatty(_STDIN)


@contextmanager
def _raw_terminal(*, is_wanted: bool) -> Iterator[None]:
    """Leave every key to the node's terminal while the block runs."""
    if not is_wanted or not has_terminal():
        yield
        return
    former = termios.tcgetattr(_STDIN)
    tty.setraw(_STDIN)
    try:
        yield
    finally:
        # A terminal may be gone by now.
        with suppress(termios.error):
            termios.tcsetattr(_STDIN, termios.TCSADRAIN, former)


def _terminal_size() -> tuple[int, int]:
    """Return rows and columns of this process's terminal."""
    for descriptor in (_STDOUT, _STDIN, _STDERR):
        with suppress(OSError):
            size = os.get_terminal_size(descriptor)
            return size.lines, size.columns
    return _ROWS, _COLUMNS


def _leaves(typed: bytes) -> bool:
    """Whether the last three bytes are a line end, the escape and its point."""
    return any(
        typed[at] in _LINE_ENDS and typed[at + 1] == _ESCAPE and typed[at + 2] == _LEAVE
        for at in range(len(typed) - 2)
    )


def _read() -> bytes:
    """Return some input; nothing at its end, or if standard input is none that can be read."""
    with suppress(OSError):
        while True:
            # It may be set not to block.
            select.select([_STDIN], [], [])
            with suppress(BlockingIOError):
                return os.read(_STDIN, MAX_BYTES)
    return b""


def _write(descriptor: int, content: bytes) -> None:
    """Write output. BrokenPipeError: it has no reader. ShellLostError: it cannot be written."""
    # Bytes of programs that users run: not text of ours, which `cli.terminal` would make safe.
    view = memoryview(content)
    try:
        (sys.stdout if descriptor == _STDOUT else sys.stderr).flush()
        while view:
            with suppress(BlockingIOError):
                view = view[os.write(descriptor, view) :]
                continue
            select.select([], [descriptor], [])
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ShellLostError(
            f"The output cannot be written here ({error.strerror}), and what ran in this shell was "
            "ended."
        ) from error
