"""One child process that speaks to SkyPilot for us: starting it, its lines, its end.

What the lines mean is the caller's business. A thread of its own starts the child, reads it and
waits for it: the kernel ends the child when that thread ends, and that is when the process does.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

TICK_S = 0.5
END_PATIENCE_S = 3.0
LARGEST_LOG_BYTES = 4 * 1024 * 1024
LOG_NAME = "calls.log"
# Everything else stays behind: SkyPilot copies what it finds into each request it sends.
PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    *(name for proxy in ("HTTP", "HTTPS", "ALL", "NO") for name in (f"{proxy}_PROXY",)),
    *(name for proxy in ("http", "https", "all", "no") for name in (f"{proxy}_proxy",)),
)


@dataclass(frozen=True, slots=True)
class CallerOptions:
    """The address of SkyPilot's API server, and the identity to use.

    `home` is the child's HOME and working directory: SkyPilot reads its configuration there and
    sends it along. `token` begins with "sky_"; None for a server that needs none.

    `is_personal`: the SkyPilot of the user who runs this program, as `sky` on their command line
    has it: all of their environment, their working directory, and a server on this machine is
    started if their configuration names no other. See `of_user`.
    """

    home: Path
    endpoint: str
    token: str | None = None
    python: str = sys.executable
    is_personal: bool = False

    @classmethod
    def of_user(cls, python: str = sys.executable) -> CallerOptions:
        """Return options for the SkyPilot of this process's user; `python` can import sky."""
        return cls(Path.home(), endpoint="", python=python, is_personal=True)

    @property
    def working_directory(self) -> Path:
        """The working directory of the child."""
        return Path.cwd() if self.is_personal else self.home

    @property
    def log(self) -> Path:
        """The log file of the child's messages."""
        return (self.home / ".mportal" if self.is_personal else self.home) / LOG_NAME

    def environment(self, outside: Mapping[str, str]) -> dict[str, str]:
        """Return the child's whole environment, given that of its parent."""
        package = str(Path(__file__).resolve().parents[2])
        ours = {"PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"}
        if self.is_personal:
            path = os.pathsep.join(filter(None, [package, outside.get("PYTHONPATH")]))
            return {**outside, **ours, "PYTHONPATH": path}
        own = {
            **ours,
            "HOME": str(self.home),
            "PYTHONPATH": package,
            "SKYPILOT_API_SERVER_ENDPOINT": self.endpoint,
            "SKYPILOT_DISABLE_LOCAL_API_SERVER": "1",
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        }
        if self.token:
            own["SKYPILOT_SERVICE_ACCOUNT_TOKEN"] = self.token
        return {name: outside[name] for name in PASSED_ON if name in outside} | own


class Owner(Protocol):
    """The receiver of what a connection reads. All three are called from its thread."""

    def on_line(self, connection: Connection, line: bytes) -> None:
        """Handle one line, without its end."""

    def on_tick(self, connection: Connection) -> None:
        """Handle a tick: called now and then."""

    def on_end(self, connection: Connection, code: int) -> None:
        """Handle the child's end with this exit code; nothing more is read."""


class Connection:
    """A child from its start to its end. OSError where it can't be started."""

    def __init__(self, options: CallerOptions, owner: Owner, argv: Sequence[str]) -> None:
        self._options = options
        self._owner = owner
        self._argv = [options.python, *argv, str(os.getpid())]
        self._writing = threading.Lock()
        self._is_started = threading.Event()
        self._failure: OSError | None = None
        self._process: subprocess.Popen[bytes] | None = None
        threading.Thread(target=self._live, name="skypilot-calls", daemon=True).start()
        self._is_started.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid if self._process is not None else 0

    def send(self, line: bytes) -> bool:
        """Send one line. False if the child takes no more."""
        with self._writing:
            stdin = self._process.stdin if self._process is not None else None
            if stdin is None or stdin.closed:
                return False
            try:
                _write_whole(stdin.fileno(), line + b"\n")
            except OSError:
                return False
            return True

    def end(self) -> None:
        """Have the child end: it does when nothing can be sent any more. Safe to repeat."""
        with self._writing:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()

    def kill(self) -> None:
        """Have the child end whatever it is doing."""
        if self._process is not None:
            self._process.kill()

    def forget(self) -> None:
        """Release the child in a fork, where it belongs to the parent."""
        process = self._process
        if process is not None:
            process.returncode = 0
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _live(self) -> None:
        try:
            process = self._process = self._start()
        except OSError as error:
            self._failure = error
            self._is_started.set()
            return
        self._is_started.set()
        self._read(process)
        self.end()
        try:
            code = process.wait(END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._owner.on_end(self, code)

    def _start(self) -> subprocess.Popen[bytes]:
        log = self._options.log
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened_log(log) as errors:
            return subprocess.Popen(
                self._argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self._options.working_directory,
                env=self._options.environment(os.environ),
                start_new_session=True,
            )

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdout is None:
            return
        fd = process.stdout.fileno()
        # Not select(), which knows no descriptor above 1023: web may have more connections.
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        rest = b""
        while True:
            if poll.poll(TICK_S * 1000):
                chunk = os.read(fd, 1 << 16)
                if not chunk:
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._owner.on_line(self, line)
            self._owner.on_tick(self)


def _opened_log(path: Path) -> BinaryIO:
    """Open the log of the child's messages: to append, but emptied once it has grown large."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    if path.exists() and path.stat().st_size > LARGEST_LOG_BYTES:
        flags |= os.O_TRUNC
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def _write_whole(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
