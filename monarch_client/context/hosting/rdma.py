"""Monarch's RDMABuffer, as the network that reads the memory of other hosts.

By ibverbs where a host has such a network, else over TCP, which is for tests: objects are faster
over a connection of their own. See decision 30.
"""

from __future__ import annotations

import contextvars
import logging
import pickle
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args

from monarch_client.context.objects.remote_memory import (
    OFFER_S,
    READ_S,
    Offer,
    RemoteMemory,
    RemoteMemoryError,
    finish_within,
)

log = logging.getLogger("monarch_client.context")
# How objects travel between hosts. "auto": by RDMA where both hosts have ibverbs, else over TCP.
Transport = Literal["auto", "tcp", "rdma"]
_START_S = 20.0

_T = TypeVar("_T")


def checked_transport(transport: str) -> str:
    """Return a transport. ValueError: there is no such one."""
    if transport not in get_args(Transport):
        names = ", ".join(map(repr, get_args(Transport)))
        raise ValueError(f"object_transport is one of {names}, and not {transport!r}")
    return transport


def remote_memory(transport: str) -> RemoteMemory | None:
    """Return the network of this host for a transport; None: there is none, or it does not start.

    Called by an actor of Monarch, or by its client.
    """
    if transport == "tcp":
        return None
    from monarch import rdma  # noqa: PLC0415 - for contexts on hosts alone

    backend = rdma.get_rdma_backend()
    if backend == "none" or (transport == "auto" and backend != "ibverbs"):
        return None
    memory = MonarchMemory(rdma.RDMABuffer)
    try:
        # Monarch starts its part on all processes of the mesh. If one is lost before, a later start
        # would wait for ever.
        finish_within(_START_S, lambda: memory.offer(memoryview(bytearray(1))).withdraw())
    except RemoteMemoryError as error:
        log.warning("This host has no RDMA: %s", error)
        return None
    return memory


class MonarchMemory:
    """The buffers of the actor that has made it, for threads of its process."""

    def __init__(self, buffer_type: Any) -> None:
        self._buffer_type = buffer_type
        # Monarch looks there for the actor that a buffer belongs to.
        self._context = contextvars.copy_context()

    def offer(self, memory: memoryview) -> Offer:
        """Let other hosts read memory."""
        return _Buffer(self._run(lambda: self._buffer_type(memory)), self._run)

    def read(self, handle: bytes, target: memoryview) -> None:
        """Read what another host offers into the beginning of memory, which may be larger."""
        buffer = pickle.loads(handle)  # noqa: S301 - of a host of this context, which runs its code
        self._run(lambda: buffer.read_into(target, timeout=READ_S).get())

    def _run(self, function: Callable[[], _T]) -> _T:
        return self._context.copy().run(function)


class _Buffer:
    """A buffer of this host."""

    def __init__(self, buffer: Any, run: Callable[[Callable[[], None]], None]) -> None:
        self.handle = pickle.dumps(buffer)
        self._buffer = buffer
        self._run = run

    def withdraw(self) -> None:
        """End the offer."""
        self._run(lambda: self._buffer.drop().get(timeout=OFFER_S))
