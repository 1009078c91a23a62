"""Reads of another host's memory, without its processor: by RDMA.

The store knows what such a network can do, and `hosting/rdma.py` how Monarch does it. The two hosts
agree on each object over a connection (`transfers.py`): the one that has it offers a part of its
memory, and the one that reads confirms the end of the read, which ends the offer.

A network writes on its own. A read that failed, or whose host was lost, may still write. Therefore
parts are read into *windows*, which are registered with the network once, and used again after
successful reads only. From there they are copied to the object.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol, TypeVar

log = logging.getLogger("monarch_client.context")
# The most that is read at once, and the size of a window.
PART_BYTES = 16 * 1024 * 1024
# An offer and its end take about as long as the bytes of a smaller object over the connection.
LEAST_BYTES = 256 * 1024
READ_S = 10
OFFER_S = 3.0
_IDLE_WINDOWS = 2

_T = TypeVar("_T")


class Offer(Protocol):
    """Memory that other hosts may read, by the handle."""

    handle: bytes

    def withdraw(self) -> None:
        """End the offer."""


class RemoteMemory(Protocol):
    """A network that reads the memory of other hosts. Its methods may raise any error."""

    def offer(self, memory: memoryview) -> Offer:
        """Let other hosts read memory."""

    def read(self, handle: bytes, target: memoryview) -> None:
        """Read what another host offers into the beginning of memory, which may be larger."""


class RemoteMemoryError(Exception):
    """The network did not do it, or not in time."""


class Offers:
    """The offers of this host. After one that failed there are no more."""

    def __init__(self, memory: RemoteMemory) -> None:
        self._memory: RemoteMemory | None = memory

    def make(self, part: memoryview) -> Offer | None:
        """Offer a part of an object; None: send its bytes."""
        if (memory := self._memory) is None:
            return None
        try:
            return finish_within(OFFER_S, lambda: memory.offer(part))
        except RemoteMemoryError as error:
            log.warning("Objects of this host are sent over TCP from now on: %s", error)
            self._memory = None
            return None

    def end(self, offer: Offer) -> None:
        """End an offer, as far as the network does it in time."""
        with suppress(RemoteMemoryError):
            finish_within(OFFER_S, offer.withdraw)


class Reads:
    """The reads of this host from others, and the windows for them."""

    def __init__(self, memory: RemoteMemory) -> None:
        self._memory = memory
        self._windows: list[memoryview] = []

    def read(self, handle: bytes, target: memoryview, connection: socket.socket) -> None:
        """Read what the host at the other end of a connection offers.

        RemoteMemoryError: the network failed. ConnectionError: the connection has ended.
        """
        try:
            window = self._windows.pop()
        except IndexError:
            window = memoryview(bytearray(PART_BYTES))
        finish_within(READ_S, lambda: self._memory.read(handle, window), connection)
        target[:] = window[: target.nbytes]
        if len(self._windows) < _IDLE_WINDOWS:
            self._windows.append(window)


def finish_within(
    limit_s: float, function: Callable[[], _T], connection: socket.socket | None = None
) -> _T:
    """Return the result of a function, which a thread calls.

    RemoteMemoryError: it failed or takes longer. ConnectionError: the connection, on which the
    other host sends nothing meanwhile, has ended. In both cases the function may still run.
    """
    result: Future[_T] = Future()
    ours, theirs = socket.socketpair()

    def run() -> None:
        with theirs:  # its end is what the caller waits for
            try:
                result.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it is raised in the caller
                result.set_exception(error)

    with ours:
        threading.Thread(target=run, name="remote-memory", daemon=True).start()
        waiting = select.poll()
        for each in (ours, connection):
            if each is not None:
                waiting.register(each, select.POLLIN)
        found = {number for number, _ in waiting.poll(limit_s * 1000)}
        if ours.fileno() not in found:
            if found:
                raise ConnectionResetError("the connection ended before the object did")
            raise RemoteMemoryError(f"it took longer than {limit_s:g} s")
    try:
        return result.result()
    except Exception as error:
        raise RemoteMemoryError(str(error) or type(error).__name__) from error
