"""Objects that travel through the driver, where hosts cannot connect to each other.

A host reads them in parts, one after the other: requests and parts are operations and reports as
all others, so that Monarch carries them wherever it reaches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Protocol

import msgspec

from monarch_client.context.objects import OWNER, HostStore, ObjectStoreError
from monarch_client.context.objects.fetching import RELAYED_BYTES

_WAIT_S = 60.0
_THREADS = 2
# The driver, as the host of what it stores.
DRIVER = "@driver"


class Range(msgspec.Struct, array_like=True):
    """A part of an object that a host wants."""

    source: str
    object_id: bytes
    offset: int


class Part(msgspec.Struct, array_like=True):
    """The answer: the size of the object and the bytes, or why there are none."""

    size: int = 0
    data: bytes = b""
    error: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode_range = msgspec.msgpack.Decoder(Range).decode
_decode_part = msgspec.msgpack.Decoder(Part).decode


class PartReader:
    """The reads of this host, each of which waits for its answer."""

    def __init__(self, send: Callable[[int, bytes], None], silence_s: float) -> None:
        """Send reads with `send`. `silence_s`: how long the network may be away."""
        self._send = send
        self._wait_s = max(_WAIT_S, silence_s)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, SimpleQueue[Part]] = {}

    def read(self, source: str, object_id: bytes, offset: int) -> tuple[int, bytes]:
        """Return the size of an object and a part of it. OSError: the host does not send it."""
        number, answers = next(self._numbers), SimpleQueue[Part]()
        self._waiting[number] = answers
        try:
            self._send(number, _encode(Range(source, object_id, offset)))
            part = answers.get(timeout=self._wait_s)
        except Empty as error:
            raise TimeoutError(f"it has been silent for {self._wait_s:g} s") from error
        finally:
            del self._waiting[number]
        if part.error:
            raise ConnectionError(part.error)
        return part.size, part.data

    def on_part(self, number: int, data: bytes) -> None:
        """Take the answer to a read."""
        if answers := self._waiting.get(number):
            answers.put(_decode_part(data))


class PartServer:
    """The parts of this host's objects. Threads read them: an object may be on disk."""

    def __init__(self, store: HostStore) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="object-parts")

    def answer(self, request: bytes, reply: Callable[[bytes], None]) -> None:
        """Read a part in another thread, which calls `reply`."""
        self._pool.submit(self._answer, request, reply)

    def close(self) -> None:
        """End the threads after what they do."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, request: bytes, reply: Callable[[bytes], None]) -> None:
        reply(_encode(self._part(_decode_range(request))))

    def _part(self, wanted: Range) -> Part:
        try:
            offset, size = self._store.pin(wanted.object_id, OWNER)
        except ObjectStoreError as error:
            return Part(error=str(error))
        try:
            whole = self._store.arena.mapping.view(offset, size)
            return Part(size, bytes(whole[wanted.offset : wanted.offset + RELAYED_BYTES]))
        finally:
            self._store.unpin(OWNER, {wanted.object_id: 1})


class RelayedHost(Protocol):
    """A host that reads parts from others, and sends parts of its own."""

    is_lost: bool

    def read(self, number: int, request: bytes) -> None:
        """Request a part of one of its objects."""

    def give(self, number: int, part: bytes) -> None:
        """Send a part that it has requested."""


class Router:
    """The driver's way from the reads of a host to the host that answers. Needs the loop's lock."""

    def __init__(self, server: PartServer, run: Callable[[Callable[[], None]], None]) -> None:
        self._server = server
        self._run = run
        self._hosts: dict[str, RelayedHost] = {}
        self._numbers = itertools.count(1)
        # By the number for the host that answers: its name, and who gets the part.
        self._forwarded: dict[int, tuple[str, Callable[[bytes], None]]] = {}

    def add_host(self, name: str, host: RelayedHost) -> None:
        """Add a host."""
        self._hosts[name] = host

    def request(self, request: bytes, reply: Callable[[bytes], None]) -> None:
        """Forward the request of a host, or of the driver, which gets the part by `reply`."""
        source = _decode_range(request).source
        host = self._hosts.get(source)
        if source == DRIVER:
            self._server.answer(request, lambda part: self._run(lambda: reply(part)))
        elif host is None or host.is_lost:
            reply(_encode(Part(error=f"the host {source} was lost")))
        else:
            number = next(self._numbers)
            self._forwarded[number] = source, reply
            host.read(number, request)

    def on_part(self, number: int, part: bytes) -> None:
        """Forward the answer of a host."""
        if forwarded := self._forwarded.pop(number, None):
            forwarded[1](part)

    def on_lost(self, name: str) -> None:
        """Answer what was requested from a lost host."""
        for number, (source, _) in list(self._forwarded.items()):
            if source == name:
                self.on_part(number, _encode(Part(error=f"the host {name} was lost")))
