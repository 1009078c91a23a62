"""A session's link process, as the user's process sees it: started, watched, started again.

The listening socket belongs to the user's process, so that connections wait while there is no link
process. It is a Unix socket in a private folder: no other user of this machine connects to it.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import monarch_client
from monarch_client.attaching.errors import AttachError
from monarch_client.attaching.unix_sockets import listen_in
from monarch_client.gateway.data_links import WORKER
from monarch_client.gateway.errors import SessionRefusedError, session_lost
from monarch_client.gateway.link_process import GENERATIONS, LinkSettings
from monarch_client.gateway.opening import Opening

log = logging.getLogger("monarch_client.gateway")

OPEN_S = 60.0
END_S = 5.0
_BACKLOG = 16
_LOG = "link.log"
_SOCKET, _NODE_SOCKET = "s", "n"
_AGAIN_S = 1.0
# By event: the message, and the field that it shows.
_WARNINGS = {
    "away": ("The portal is not reached; calls wait, for up to %.0f s.", "limit_s"),
    "back": ("The portal is reached again, after %.1f s.", "away_s"),
    "head_away": ("The job's head node is not reached; calls wait, for up to %.0f s.", "limit_s"),
    "head_back": ("The job's head node is reached again, after %.1f s.", "away_s"),
}


@dataclass(frozen=True)
class Hooks:
    """Callbacks of a link, called in its thread."""

    on_loss: Callable[[Exception], None]
    on_lost_hosts: Callable[[list[int]], None]


class Link:
    """The link of one session. `open` starts it, `close` ends the session."""

    def __init__(
        self,
        opened: Opening,
        folder: Path,
        hooks: Hooks,
        away_limit_s: float | None,
        *,
        kind: str = WORKER,
    ) -> None:
        self._kind = kind
        self._opened = opened
        self._credential = opened.ticket
        self._folder = folder
        self._hooks = hooks
        self._away_limit_s = away_limit_s
        self.address = f"ipc://{folder / _SOCKET}"
        # Where callers of node streams connect.
        self.node_socket = folder / _NODE_SOCKET
        self._listener = listen_in(folder, _SOCKET, _BACKLOG)
        self._node_listener = listen_in(folder, _NODE_SOCKET, _BACKLOG)
        self._process: subprocess.Popen[str] | None = None
        self._starts = 0
        self._away_since: float | None = None
        self._mesh: dict[str, Any] = {}
        self._failure: AttachError | None = None
        self._has_mesh, self._is_ready = threading.Event(), threading.Event()
        self._is_closed = threading.Event()

    @property
    def pid(self) -> int:
        """The id of the link process."""
        return self._process.pid if self._process is not None else 0

    def open(self) -> dict[str, Any]:
        """Start the link process; return the mesh message of the job's head."""
        self._start()
        threading.Thread(target=self._watch, daemon=True, name="gateway link").start()
        self._wait_for(self._has_mesh, "The job's head node has not connected to the portal")
        return self._mesh

    def wait_until_ready(self) -> None:
        """Wait for the certificate. AttachError: there is none."""
        self._wait_for(self._is_ready, "The job's head node has signed no certificate")

    def close(self) -> None:
        """End the link process, and with it the session."""
        self._is_closed.set()
        process = self._process
        if process is not None:
            with suppress(OSError):
                _piped(process.stdin).close()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._listener.close()
        self._node_listener.close()

    def _wait_for(self, event: threading.Event, problem: str) -> None:
        is_set = event.wait(OPEN_S)
        if self._failure is not None:
            raise self._failure
        if not is_set:
            raise SessionRefusedError(f"{problem} within {OPEN_S:.0f} s. Try again.")

    def _start(self) -> None:
        away_s = time.monotonic() - self._away_since if self._away_since is not None else 0.0
        settings = LinkSettings(
            portal_url=self._opened.portal_url,
            credential=self._credential,
            folder=str(self._folder),
            listener=self._listener.fileno(),
            node_listener=self._node_listener.fileno(),
            first_generation=self._starts * GENERATIONS,
            away_s=away_s,
            away_limit_s=self._away_limit_s,
            kind=self._kind,
            token=self._opened.token,
        )
        self._starts += 1
        with (self._folder / _LOG).open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "monarch_client.gateway.link_process"],
                # An empty folder: the user's own has modules of any name.
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": _python_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=[settings.listener, settings.node_listener],
                # Ctrl-C is the program's.
                start_new_session=True,
                text=True,
            )
        with suppress(BrokenPipeError):
            pipe = _piped(self._process.stdin)
            pipe.write(settings.to_line())
            pipe.flush()

    def _watch(self) -> None:
        """Read events; start a process again that ended by itself."""
        while (process := self._process) is not None:
            for line in _piped(process.stdout):
                if not self._is_closed.is_set():
                    self._note(json.loads(line))
            process.wait()
            _piped(process.stdout).close()
            with suppress(OSError):
                _piped(process.stdin).close()
            if self._is_closed.is_set() or self._failure is not None:
                return
            if not self._is_ready.is_set():
                text = (self._folder / _LOG).read_text(errors="replace").strip()[-500:]
                self._fail(SessionRefusedError(f"The link process ended at its start: {text}"))
                return
            log.warning("The gateway's link process ended by itself; it is started again.")
            if self._away_since is None:
                self._away_since = time.monotonic()
            elif self._is_closed.wait(_AGAIN_S):
                return
            self._start()

    def _note(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "session":
            self._credential = event["secret"]
            self._away_since = None
        elif kind == "mesh":
            self._mesh = event["mesh"]
            self._has_mesh.set()
        elif kind == "ready":
            self._is_ready.set()
        elif kind in _WARNINGS:
            self._warn(event)
        elif kind == "lost_hosts":
            self._hooks.on_lost_hosts(event["ranks"])
        elif kind == "lost" and self._is_ready.is_set():
            self._fail(session_lost(event["away_s"], event["reason"], self._kind))
        else:  # refused, or lost before it was open
            self._fail(SessionRefusedError(f"The session was refused: {event['reason']}"))

    def _warn(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "away":
            self._away_since = time.monotonic()
        # A head that has not connected yet is no outage: `open` waits for it.
        if self._is_ready.is_set() or not kind.startswith("head_"):
            text, field = _WARNINGS[kind]
            log.warning(text, event[field])

    def _fail(self, error: AttachError) -> None:
        self._failure = error
        is_running = self._is_ready.is_set()
        self._has_mesh.set()
        self._is_ready.set()
        if is_running and not self._is_closed.is_set():
            self._hooks.on_loss(error)


def _piped(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise AssertionError  # all are opened with PIPE
    return pipe


def _python_path() -> str:
    """Return the search path with the folder of this package, however this process found it."""
    own = str(Path(monarch_client.__path__[0]).parent)
    return os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH", "")]))
