"""A port of this machine that leads to a worker through a command, such as ssh.

A worker's port is reached again after an interruption only if each new connection finds the former
one ended: the worker serves one connection of a client. Commands are chosen with that in mind.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PROGRAM = Path(__file__).with_name("tunnel_process.py")
AGAIN_S = 0.5
END_S = 5.0
_KINDS: dict[str, type[OSError] | None] = {
    "up": None,
    "down": TimeoutError,
    "silent": TimeoutError,
    "refused": ConnectionRefusedError,
}


class Tunnel:
    """A port that leads to a worker. `close` ends it, and so does the end of this process.

    A child process has the connections, so that a busy program does not delay them. The port
    accepts always: while the command is down, connections wait, and so does Monarch. `command`,
    `ready`: see `tunnel_process.Settings`.
    """

    def __init__(self, command: Sequence[str], ready: str, errors: Path) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._settings = {
            "listener": self._listener.fileno(),
            "command": list(command),
            "ready": ready,
            "errors": str(errors),
        }
        self._trouble: OSError | None = TimeoutError(f"{command[0]} has not connected yet")
        self._has_reported = threading.Event()
        self._is_closed = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="tunnel")
        self._thread.start()

    def look(self) -> OSError | None:
        """Return why no worker is reached now; None if one is, as far as is known.

        ConnectionRefusedError: nothing listens on the worker's port.
        """
        return self._trouble

    def wait(self, timeout_s: float) -> OSError | None:
        """Wait until the command has connected or failed; `look` then."""
        self._has_reported.wait(timeout_s)
        return self.look()

    def close(self) -> None:
        """End the command and the port."""
        self._is_closed.set()
        _end(self._process)
        self._thread.join(END_S)
        self._listener.close()

    def _keep(self) -> None:
        """Follow the child, and start another one if it is killed: the port stays open."""
        while not self._is_closed.is_set():
            # At the end of the block its pipes are closed and its exit code is taken.
            with self._process as child:
                assert child.stdout is not None  # noqa: S101 - it is a pipe
                for line in child.stdout:
                    self._note(json.loads(line))
            if not self._is_closed.wait(AGAIN_S):
                self._process = self._start()
        _end(self._process)

    def _note(self, change: dict[str, str]) -> None:
        kind = _KINDS[change["state"]]
        self._trouble = kind(change["detail"]) if kind else None
        self._has_reported.set()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            # Isolated: it needs nothing but the standard library.
            [sys.executable, "-IS", str(PROGRAM), json.dumps(self._settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[self._listener.fileno()],
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the child's standard input, with which it ends. A repetition does nothing."""
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(OSError):
        process.stdin.close()
