"""The executors of one host: forked by a zygote, used by allocations, kept for the next ones."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

import monarch_client
from monarch_client.context.amounts import own_gpus
from monarch_client.context.code_cache import CodeCache
from monarch_client.context.driver.loop import Loop, Outbox
from monarch_client.context.wire import (
    FROM_EXECUTOR,
    FROM_ZYGOTE,
    Done,
    Ended,
    Fork,
    FrameReader,
    Held,
    Kill,
    Ready,
    Returned,
    Setup,
    frame,
)

if TYPE_CHECKING:
    from monarch_client.context.scheduling import Allocation

_LARGEST_MESSAGE = 1 << 16
_END_S = 5.0
# Imported once by the zygote if the driver has imported them: each takes long to import.
_PRELOADED = ("numpy",)
_START = "from monarch_client.context.zygote import main; main()"


class Events(Protocol):
    """The owner of a pool, as a receiver of its executors' reports."""

    def on_message(self, executor: Executor, message: Done | Returned | Held) -> None:
        """Handle a message of an executor."""

    def on_ended(self, executor: Executor, status: int) -> None:
        """Handle the end of an executor: of its calls nothing more is reported."""


class Executor:
    """One executor process, as the driver sees it."""

    def __init__(self, number: int, devices: tuple[int, ...], pool: ExecutorPool) -> None:
        self.number = number
        self.devices = devices
        self.codes: CodeCache[bool] = CodeCache()
        self.allocation: Allocation | None = None
        self.actor = b""
        # The calls that it was sent and has not ended, in the order in which it runs them.
        self.calls: dict[bytes, None] = {}
        # The references that its process holds, and how many of its threads wait for others.
        self.held: set[bytes] = set()
        self.waiting = 0
        self.served = 0
        self._loop = pool.loop
        self.tasks, theirs = socket.socketpair()
        self.control, their_control = socket.socketpair()
        self.theirs = [theirs, their_control]
        self.reader: FrameReader[Done | Returned | Held] = FrameReader(self.tasks, FROM_EXECUTOR)
        self._loop.add(self.tasks, lambda: pool.read(self))
        self._loop.add(self.control, lambda: None)
        self._task_box = Outbox(self._loop, self.tasks)
        self._control_box = Outbox(self._loop, self.control)

    def send(self, frames: bytes) -> None:
        """Send calls."""
        self._task_box.send(frames)

    def request(self, message: msgspec.Struct) -> None:
        """Send a request about calls."""
        self._control_box.send(frame(message))

    def close(self) -> None:
        """Close the sockets, which ends the process when its call has ended."""
        self._loop.remove(self.tasks)
        self._loop.remove(self.control)


class ExecutorPool:
    """The executors of this host."""

    def __init__(self, loop: Loop, events: Events, most_idle: int) -> None:
        self.loop = loop
        self.address = f"monarch-context-{secrets.token_hex(16)}"
        self._events = events
        self._most_idle = most_idle
        self._made = 0
        self._executors: dict[int, Executor] = {}
        self._idle: dict[tuple[int, ...], list[Executor]] = {}
        self._gpus = own_gpus()
        # Requests that the zygote has not taken: it may still be starting.
        self._unsent: deque[tuple[bytes, list[socket.socket]]] = deque()
        self._process, self._control = _started_zygote()
        self._decoder: msgspec.msgpack.Decoder[Ready | Ended] = msgspec.msgpack.Decoder(FROM_ZYGOTE)

    @property
    def pid(self) -> int:
        """The process id of the zygote."""
        return self._process.pid

    @property
    def executors(self) -> list[Executor]:
        """All executors that have not ended."""
        return list(self._executors.values())

    def start(self) -> None:
        """Let the zygote become like this process."""
        setup = Setup(
            path=[each or str(Path.cwd()) for each in sys.path],
            folder=str(Path.cwd()),
            argv=sys.argv,
            modules=[name for name in _PRELOADED if name in sys.modules],
            address=self.address,
        )
        self.loop.add(self._control, self._read_zygote)
        self._request(setup)

    def find(self, number: int) -> Executor | None:
        """Return the executor of a number, unless it has ended."""
        return self._executors.get(number)

    def acquire(self, devices: tuple[int, ...], *, fresh: bool = False) -> Executor:
        """Return an executor that is idle, or a new one."""
        idle = self._idle.get(devices)
        if idle and not fresh:
            return idle.pop()
        self._made += 1
        executor = Executor(self._made, devices, self)
        self._executors[executor.number] = executor
        self._fork(executor)
        return executor

    def release(self, executor: Executor, *, retire: bool = False) -> None:
        """Keep an executor for the next allocation, or end it."""
        executor.allocation = None
        idle = self._idle.setdefault(executor.devices, [])
        if retire or len(idle) >= self._most_idle:
            executor.close()
        else:
            idle.append(executor)

    def kill(self, executor: Executor) -> None:
        """Kill an executor, with the processes that it started."""
        self._request(Kill(executor.number))

    def read(self, executor: Executor) -> None:
        """Handle what an executor sent."""
        try:
            for message in executor.reader.read():
                self._events.on_message(executor, message)
        except EOFError:
            # It has closed its end; the zygote reports how it ended.
            executor.close()
        except BlockingIOError:
            pass

    def close(self) -> None:
        """End all executors and the zygote, and wait for that."""
        self._control.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._forget_unsent()
        for executor in self._executors.values():
            executor.tasks.close()
            executor.control.close()

    def _fork(self, executor: Executor) -> None:
        env = {}
        if executor.devices or self._gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(map(self._gpu_name, executor.devices))
        self._request(Fork(executor.number, env), executor.theirs)

    def _gpu_name(self, device: int) -> str:
        return self._gpus[device] if device < len(self._gpus) else str(device)

    def _request(self, message: msgspec.Struct, sockets: list[socket.socket] | None = None) -> None:
        self._unsent.append((msgspec.msgpack.encode(message), sockets or []))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        """Send requests to the zygote as far as it takes them."""
        while self._unsent:
            data, sockets = self._unsent[0]
            try:
                socket.send_fds(self._control, [data], [each.fileno() for each in sockets])
            except BlockingIOError:
                self.loop.expect_room(self._control, self._flush)
                return
            except OSError:
                return  # its end is noticed by reading
            self._unsent.popleft()
            for each in sockets:
                each.close()
        self.loop.expect_room(self._control, None)

    def _forget_unsent(self) -> None:
        for _, sockets in self._unsent:
            for each in sockets:
                each.close()
        self._unsent.clear()

    def _read_zygote(self) -> None:
        try:
            data = self._control.recv(_LARGEST_MESSAGE)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._lose_all()
            return
        message = self._decoder.decode(data)
        if isinstance(message, Ended):
            self._end(message)

    def _end(self, message: Ended) -> None:
        executor = self._executors.pop(message.number, None)
        if executor is None:
            return
        # What it sent before its end counts.
        while executor.tasks.fileno() >= 0:
            self._drain(executor)
        if executor in (idle := self._idle.get(executor.devices, [])):
            idle.remove(executor)
        self._events.on_ended(executor, message.status)

    def _drain(self, executor: Executor) -> None:
        try:
            for message in executor.reader.read():
                self._events.on_message(executor, message)
        except (EOFError, OSError):
            executor.close()

    def _lose_all(self) -> None:
        """Start another zygote after the end of this one, which has ended its executors."""
        self.loop.remove(self._control)
        self._process.wait()
        self._forget_unsent()
        self._process, self._control = _started_zygote()
        self.start()
        for number in list(self._executors):
            self._end(Ended(number, -signal.SIGKILL))


def _started_zygote() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    driver = os.pidfd_open(os.getpid())
    own = str(Path(monarch_client.__path__[0]).parent)
    path = os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH", "")]))
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": path}
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs.fileno()), str(driver)],
            # The user's folder has modules of any name; the zygote goes there once it runs.
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno(), driver],
            start_new_session=True,
        )
    finally:
        theirs.close()
        os.close(driver)
    return process, ours
