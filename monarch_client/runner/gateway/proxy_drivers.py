"""The drivers of mesh proxies: one process for each session of a program without torchmonarch.

A driver outlives this process, so that its session survives a restart of it: its address is in a
file. The runner ends all of them with the attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from asyncio.subprocess import Process

_START_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 10.0
_MAX_REASON = 300


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
        for number in list(self._starts) if session is None else [session]:
            start = self._starts.pop(number, None)
            if start is not None:
                start.cancel()
            process = self._processes.pop(number, None)
            if self._settings is not None:
                with contextlib.suppress(OSError):
                    self._file(self._settings, number).unlink()
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()

    def _forget(self, session: int, start: asyncio.Task[str]) -> None:
        if self._starts.get(session) is start:
            self.close(session)

    async def _find_or_start(self, session: int) -> str:
        """Return the address of the driver, which an earlier process may have started."""
        settings = self._settings
        if settings is None:
            raise ProxyError("the workers of this job have no TLS, which proxies need")
        file = self._file(settings, session)
        if file.exists():
            return file.read_text(encoding="utf-8")
        log = file.with_suffix(".log")
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
        assert process.stdout is not None  # noqa: S101 - for the type checker: PIPE is set
        line = await asyncio.wait_for(process.stdout.readline(), _START_TIMEOUT_S)
        word, _, address = line.decode().strip().partition(" ")
        if word != "listening":
            reason = log.read_text(encoding="utf-8", errors="replace").strip()[-_MAX_REASON:]
            raise ProxyError(f"the proxy driver did not start: {reason}")
        file.write_text(address, encoding="utf-8")
        return address

    @staticmethod
    def _file(settings: ProxySettings, session: int) -> Path:
        return Path(settings.folder) / f"proxy-{session}"
