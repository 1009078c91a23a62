"""A network namespace from which one port of this machine is reached, and nothing else."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tests.cluster.rig.spaces import NEW_NETWORK, run, unshare
from tests.cuttable_relay import CuttableRelay

T = TypeVar("T")


class OwnNetwork:
    """A network whose programs reach this machine's 127.0.0.1:`port`, there too. Needs root."""

    def __init__(self, port: int) -> None:
        self._inside = _Thread()
        self._inside.call(_enter)
        listener = self._inside.call(lambda: socket.create_server(("127.0.0.1", port)))
        self.relay = CuttableRelay(listener, port)

    def start(self, argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process in the network."""
        return self._inside.call(lambda: subprocess.Popen(argv, **options))

    def close(self) -> None:
        """End it."""
        self.relay.close()
        self._inside.end()


class _Thread:
    """A thread that makes calls: namespaces belong to threads, and children inherit them."""

    def __init__(self) -> None:
        self._call: Callable[[], Any] | None = None
        self._wake, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._result: Any = None
        threading.Thread(target=self._run, daemon=True).start()

    def call(self, work: Callable[[], T]) -> T:
        """Return what `work` returns in the thread; raise what it raises."""
        self._call = work
        self._wake.release()
        self._done.acquire()
        if isinstance(self._result, BaseException):
            raise self._result
        result: T = self._result
        return result

    def end(self) -> None:
        """End the thread."""
        self._call = None
        self._wake.release()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            if self._call is None:
                return
            try:
                self._result = self._call()
            except BaseException as error:  # noqa: BLE001 - raised by `call`
                self._result = error
            self._done.release()


def _enter() -> None:
    unshare(NEW_NETWORK)
    run("ip", "link", "set", "lo", "up")
