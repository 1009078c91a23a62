"""The drivers of mesh proxies: one process for each session of a program without torchmonarch.

A driver outlives this process, so that its session survives a restart of it: its process and its
address are in a file, where the next process finds them. The runner ends all with the attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base.process_tree import started_at
from monarch_client.runner.base.small_files import write_note

if TYPE_CHECKING:
    from asyncio.subprocess import Process

_START_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 10.0
_MAX_REASON = 300
_PREFIX = "proxy-"


class ProxySettings(NamedTuple):
    """The command of a driver, and the directory for the files of drivers."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    folder: str


class ProxyError(OSError):
    """A driver that does not start or answer; the message contains the reason."""


class ProxyDrivers:
    """The drivers of all sessions, each started by the first connection to it."""

    def __init__(self, settings: ProxySettings | None) -> None:
        self._settings = settings
        self._starts: dict[int, asyncio.Task[str]] = {}
        self._processes: dict[int, Process] = {}

    async def connect(
        self, session: int, limit: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the driver of a session. ProxyError: there is none, and none starts."""
        start = self._starts.get(session)
        if start is None:
            start = self._starts[session] = asyncio.ensure_future(self._find_or_start(session))
        try:
            # Of several connections that wait for it, one that is canceled ends no start.
            port = int((await asyncio.shield(start)).rpartition(":")[2])
            connecting = asyncio.open_connection("127.0.0.1", port, limit=limit)
            return await asyncio.wait_for(connecting, _CONNECT_TIMEOUT_S)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            # The next connection starts another one, which reports that the session is lost.
            self._forget(session, start)
            if isinstance(error, ProxyError):
                raise
            raise ProxyError(f"the proxy driver does not answer: {error!r}") from error

    def close(self, session: int | None = None) -> None:
        """End the driver of a session, or of all sessions, and what it started."""
        for number in self.sessions() if session is None else [session]:
            start = self._starts.pop(number, None)
            if start is not None:
                start.cancel()
            # Kept until now, so that its end is noticed.
            self._processes.pop(number, None)
            note = self._note(number)
            if note is not None:
                _end(note.read())
                note.remove()

    def sessions(self) -> set[int]:
        """Return the sessions that have a driver or will have one, also of a former process."""
        settings = self._settings
        files = Path(settings.folder).glob(f"{_PREFIX}*") if settings is not None else ()
        names = [file.name[len(_PREFIX) :] for file in files]
        return {*self._starts, *(int(name) for name in names if name.isdigit())}

    def _forget(self, session: int, start: asyncio.Task[str]) -> None:
        if self._starts.get(session) is start:
            self.close(session)

    async def _find_or_start(self, session: int) -> str:
        """Return the address of the driver, which an earlier process may have started."""
        settings = self._settings
        if settings is None:
            raise ProxyError("the workers of this job have no TLS, which proxies need")
        note = _Note(settings.folder, session)
        known = note.read()
        if known.address:
            return known.address
        # A former process was ended before its driver listened.
        _end(known)
        log = note.file.with_suffix(".log")
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *settings.argv,
                "--listen",
                "tcp:127.0.0.1:0",
                "--tls-subject",
                f"laptop {session}",
                "--folder",
                settings.folder,
                cwd=settings.cwd,
                env=settings.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        self._processes[session] = process
        started = started_at(process.pid) or 0
        note.write(_Driver(process.pid, started))
        assert process.stdout is not None  # noqa: S101 - for the type checker: PIPE is set
        line = await asyncio.wait_for(process.stdout.readline(), _START_TIMEOUT_S)
        word, _, address = line.decode().strip().partition(" ")
        if word != "listening":
            reason = log.read_text(encoding="utf-8", errors="replace").strip()[-_MAX_REASON:]
            raise ProxyError(f"the proxy driver did not start: {reason}")
        note.write(_Driver(process.pid, started, address))
        return address

    def _note(self, session: int) -> _Note | None:
        return _Note(self._settings.folder, session) if self._settings is not None else None


class _Driver(NamedTuple):
    """A driver's process, with its start, and its address once it listens."""

    pid: int = 0
    started_at: int = 0
    address: str = ""


class _Note:
    """The file of a session's driver, for the process after this one."""

    def __init__(self, folder: str, session: int) -> None:
        self.file = Path(folder) / f"{_PREFIX}{session}"

    def read(self) -> _Driver:
        try:
            return _Driver(*json.loads(self.file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):  # none, or of another version
            return _Driver()

    def write(self, driver: _Driver) -> None:
        write_note(self.file, json.dumps(driver))

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self.file.unlink()


def _end(driver: _Driver) -> None:
    """End a driver, unless its process id belongs to another process by now."""
    if driver.pid and started_at(driver.pid) == driver.started_at:
        with contextlib.suppress(OSError):
            os.kill(driver.pid, signal.SIGTERM)
