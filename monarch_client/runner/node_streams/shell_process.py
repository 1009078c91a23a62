"""A program of a shell stream: with a terminal of its own or with pipes, and ended as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import os
import secrets
import signal
import struct
import subprocess
import termios
import threading
from typing import IO, TYPE_CHECKING

from monarch_client.runner.base.process_tree import (
    descendants,
    members_of_session,
    processes_with,
    signal_all,
    started_at,
)
from monarch_client.runner.base.processes import exit_code_of
from monarch_client.runner.node_streams.messages import MAX_BYTES

if TYPE_CHECKING:
    from typing import Mapping, Sequence

# Marks the processes of a shell: those that leave its session have it too.
SHELL_MARK = "MPORTAL_SHELL"
_HANG_UP_S = 1.0
_LOOK_S = 0.05
_ROUNDS = 50
_SIGNALS = ("HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "CONT")
_END_OF_INPUT = b"\x04"
_MOST_CELLS = 10_000


class ShellProcess:
    """The program. `outputs` are its standard output and error; one of a terminal."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        self._argv = argv
        self._cwd = cwd
        self._mark = secrets.token_hex(16)
        self._env = {**env, SHELL_MARK: self._mark}
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal: int | None = None
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._transports: list[asyncio.BaseTransport] = []
        self.outputs: list[asyncio.StreamReader] = []
        self.stdin: asyncio.StreamWriter

    async def start_with_pipes(self) -> None:
        """Start it with three pipes. OSError."""
        pipe = subprocess.PIPE
        process = self._start(pipe, pipe, pipe, is_terminal=False)
        self.stdin = await self._written(process.stdin)
        self.outputs = [await self._read(process.stdout), await self._read(process.stderr)]

    async def start_with_terminal(self, rows: int, columns: int) -> None:
        """Start it with a terminal of this size. OSError."""
        terminal, side = os.openpty()
        try:
            self._terminal = terminal
            self.resize(rows, columns)
            self._start(side, side, side, is_terminal=True)
        except BaseException:
            os.close(terminal)
            self._terminal = None
            raise
        finally:
            os.close(side)
        self.stdin = await self._written(os.fdopen(os.dup(terminal), "wb", 0))
        self.outputs = [await self._read(os.fdopen(terminal, "rb", 0))]

    async def exited(self) -> int:
        """Wait for its end; return the exit code as a shell counts it."""
        return exit_code_of(await self._exit)

    def end_input(self) -> None:
        """End its standard input."""
        if self._terminal is None:
            self.stdin.close()
        else:
            self.stdin.write(_END_OF_INPUT)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of its terminal, if it has one."""
        if self._terminal is not None:
            cells = [max(0, min(int(each), _MOST_CELLS)) for each in (rows, columns)]
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *cells, 0, 0))

    def signal(self, name: str) -> None:
        """Send a signal to its process group, if the name is one of those that users send."""
        if name in _SIGNALS:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._started.pid, getattr(signal, f"SIG{name}"))

    async def hang_up(self) -> None:
        """End all its processes: SIGHUP, and a second later SIGKILL."""
        loop = asyncio.get_running_loop()
        left = await loop.run_in_executor(None, self._processes)
        signal_all(left, signal.SIGHUP)
        signal_all(left, signal.SIGCONT)
        kill_at = loop.time() + _HANG_UP_S
        while left and loop.time() < kill_at:
            await asyncio.sleep(_LOOK_S)
            left = await loop.run_in_executor(None, self._processes)
        await loop.run_in_executor(None, self.kill)

    def kill(self) -> None:
        """Kill all its processes, repeatedly until none is left. It may not have started."""
        if self._process is None:
            return
        for _ in range(_ROUNDS):
            found = self._processes()
            if not found:
                return
            # Stopped processes cannot start new ones while we go through the list.
            signal_all(found, signal.SIGSTOP)
            signal_all(found, signal.SIGKILL)

    def close(self) -> None:
        """Close its pipes or terminal."""
        for transport in self._transports:
            transport.close()

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None  # noqa: S101 - for the type checker: used once it started
        return self._process

    def _start(
        self, stdin: int, stdout: int, stderr: int, *, is_terminal: bool
    ) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            self._argv,
            cwd=self._cwd,
            env=self._env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            bufsize=0,
            start_new_session=True,
            preexec_fn=_take_terminal if is_terminal else None,  # noqa: PLW1509 - one ioctl
        )
        threading.Thread(target=self._wait, args=(self._process,), daemon=True).start()
        return self._process

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Report the end of the program to the event loop, which may be closed by then."""
        returncode = process.wait()
        with contextlib.suppress(RuntimeError):
            self._exit.get_loop().call_soon_threadsafe(self._exited, returncode)

    def _exited(self, returncode: int) -> None:
        if not self._exit.done():
            self._exit.set_result(returncode)

    def _processes(self) -> list[int]:
        """Return its live processes: by mark, session and descent, of which one may be lost."""
        pid = self._started.pid
        found = {*processes_with(SHELL_MARK, self._mark)}
        if self._started.returncode is None:
            found |= {pid, *descendants(pid)}
        # A program that has this id now, after the end of ours, is another one.
        if self._started.returncode is None or started_at(pid) is None:
            found |= {*members_of_session(pid)}
        return sorted(each for each in found if started_at(each) is not None)

    async def _read(self, file: IO[bytes] | None) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(MAX_BYTES)
        connect = asyncio.get_running_loop().connect_read_pipe
        transport, _ = await connect(functools.partial(_Output, reader), file)
        self._transports.append(transport)
        return reader

    async def _written(self, file: IO[bytes] | None) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        # Without a reader that someone keeps, its protocol would close the transport.
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_write_pipe(lambda: protocol, file)
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, reader, loop)


class _Output(asyncio.StreamReaderProtocol):
    """Output to its end. A terminal ends with an error, which would hide what was read before."""

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        super().connection_lost(None)


def _take_terminal() -> None:
    """Make standard input the controlling terminal of the new session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
