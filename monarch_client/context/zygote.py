"""A process that forks executors: `python -c "... main()"`, started by the driver.

It has one thread and never imports Monarch, whose threads do not survive a fork. It ends with the
driver, however that ends, and with it all executors and the processes that they started.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import selectors
import shutil
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from monarch_client.context.executor import Executor
from monarch_client.context.task_context import TaskContext
from monarch_client.context.wire import TO_ZYGOTE, Ended, Fork, InFile, Kill, Ready, Setup

_LARGEST_MESSAGE = 1 << 20
# Two sockets of an executor, and the file of a large message.
_DESCRIPTORS = 3
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the driver, whose socket and process are the descriptors in the arguments."""
    control, driver = int(sys.argv[1]), int(sys.argv[2])
    Zygote(socket.socket(fileno=control), driver).serve()


class Zygote:
    """The executors of one host, by their numbers."""

    def __init__(self, control: socket.socket, driver: int) -> None:
        self._control = control
        self._driver = driver
        self._address = self._store_address = ""
        self._pids: dict[int, int] = {}
        self._selector = selectors.DefaultSelector()
        self._decoder: msgspec.msgpack.Decoder[Setup | InFile | Fork | Kill]
        self._decoder = msgspec.msgpack.Decoder(TO_ZYGOTE)

    def serve(self) -> None:
        """Fork, kill and reap executors until the driver closes the socket or ends."""
        # Its own group: Ctrl-C is the program's.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._driver, selectors.EVENT_READ)
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.fileobj is self._control:
                        self._receive()
                    elif key.fd == self._driver:
                        raise EOFError
                    else:
                        self._reap(key.fd, key.data)
        except (EOFError, ConnectionError):
            # The driver has closed the context, or was killed and leaves its sockets behind.
            if self._address:
                shutil.rmtree(Path(self._address).parent, ignore_errors=True)
        finally:
            for pid in self._pids.values():
                kill_group(pid)

    def _receive(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._control, _LARGEST_MESSAGE, _DESCRIPTORS)
        if not data:
            raise EOFError
        message = self._decoder.decode(data)
        if isinstance(message, InFile):
            with open(descriptors.pop(0), "rb") as file:  # noqa: PTH123 - it has no path
                file.seek(0)
                message = self._decoder.decode(file.read())
        if isinstance(message, Setup):
            self._set_up(message)
        elif isinstance(message, Fork):
            self._fork(message, descriptors)
        elif isinstance(message, Kill) and message.number in self._pids:
            kill_group(self._pids[message.number])

    def _set_up(self, setup: Setup) -> None:
        """Become like the driver; import what its tasks will need, once for all."""
        self._address = os.fsdecode(setup.address)
        self._store_address = os.fsdecode(setup.store_address)
        with suppress(OSError):
            os.chdir(setup.folder)
        sys.path[:] = map(os.fsdecode, setup.path)
        sys.argv[:] = map(os.fsdecode, setup.argv)
        for module in setup.modules:
            with suppress(ImportError):
                importlib.import_module(module)
        gc.collect()
        # Else each collection in an executor would copy these pages.
        gc.freeze()
        self._send(Ready())

    def _fork(self, request: Fork, descriptors: list[int]) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            # The user has too many processes; the other executors go on.
            pid = -1
        if pid == 0:
            self._become_executor(request, descriptors, parent)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid < 0:
            self._send(Ended(request.number, os.EX_OSERR))
            return
        with suppress(OSError):
            os.setpgid(pid, pid)
        self._pids[request.number] = pid
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, request.number)

    def _become_executor(self, request: Fork, descriptors: list[int], parent: int) -> None:
        try:
            end_with_parent(parent)
            with suppress(OSError):
                os.setpgid(0, 0)
            for key in list(self._selector.get_map().values()):
                os.close(key.fd)
            self._selector.close()
            set_variables(request.env)
            tasks, control = (socket.socket(fileno=each) for each in descriptors)
            context = TaskContext(request.number, self._address, self._store_address)
            Executor(context, tasks, control).run()
        finally:
            # No clean-up of the zygote's own must run here.
            os._exit(1)

    def _reap(self, descriptor: int, number: int) -> None:
        pid = self._pids.pop(number)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        # Before it is reaped: until then no other group has its number.
        kill_group(pid)
        _, status = os.waitpid(pid, 0)
        self._send(Ended(number, os.waitstatus_to_exitcode(status)))

    def _send(self, message: msgspec.Struct) -> None:
        self._control.send(msgspec.msgpack.encode(message))


def kill_group(pid: int) -> None:
    """Kill an executor and the processes that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def set_variables(env: Mapping[str, str]) -> None:
    """Set environment variables of this process."""
    os.environ.update(env)
