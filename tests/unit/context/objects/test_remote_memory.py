"""Objects that a host reads from the memory of another one; a stand-in for the network."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monarch_client.context.objects import (
    OWNER,
    HostObjects,
    ObjectUnreachableError,
    remote_memory,
)
from tests.waiting import eventually

PART = remote_memory.PART_BYTES
SIZE = PART + PART // 2
OBJECT, OTHER = b"object", b"other"


class Network:
    """Memory by handle. A test replaces `before_read`."""

    def __init__(self) -> None:
        self.offered: dict[bytes, memoryview] = {}
        self.targets: list[int] = []
        self.before_read: Callable[[], object] = bool
        self.refuses = False
        self._numbers = itertools.count()

    def offer(self, memory: memoryview) -> _Offer:
        if self.refuses:
            raise OSError("no memory can be registered")
        handle = str(next(self._numbers)).encode()
        self.offered[handle] = memory
        return _Offer(self.offered, handle)

    def read(self, handle: bytes, target: memoryview) -> None:
        source = self.offered[handle]
        self.before_read()
        self.targets.append(id(target))
        target[: source.nbytes] = source


class _Offer:
    def __init__(self, offered: dict[bytes, memoryview], handle: bytes) -> None:
        self._offered, self.handle = offered, handle

    def withdraw(self) -> None:
        del self._offered[self.handle]


class Hosts:
    """Two hosts of a context: one has objects, the other one reads them."""

    def __init__(self, folder: Path) -> None:
        self.network = Network()
        self.source = HostObjects(8 * PART, folder)
        self.reader = HostObjects(8 * PART, folder)
        joined = [
            each.join_others("127.0.0.1", "secret", relayed, self.network)
            for each in (self.source, self.reader)
        ]
        self.addresses = dict(zip(("source", "reader"), joined, strict=True))
        self.set_hosts(self.source)
        self.set_hosts(self.reader)

    def set_hosts(self, objects: HostObjects, *, without: str = "") -> None:
        there = {name: each for name, each in self.addresses.items() if name != without}
        objects.set_hosts(there)

    def put(self, object_id: bytes, size: int = SIZE) -> bytes:
        contents = bytes(range(251)) * (size // 251 + 1)
        offset = self.source.store.create(object_id, size, OWNER)
        assert offset is not None
        self.source.store.arena.mapping.write(offset, [(0, memoryview(contents[:size]))])
        self.source.store.seal(object_id, OWNER)
        return contents[:size]

    def get(self, object_id: bytes) -> bytes:
        offset, size = self.reader.store.pin(object_id, OWNER, "source")
        contents = bytes(self.reader.store.arena.mapping.view(offset, size))
        self.reader.store.unpin(OWNER, {object_id: 1})
        return contents

    @property
    def pinned(self) -> int:
        return self.source.store.usage().in_use


def relayed(source: str, object_id: bytes, offset: int) -> tuple[int, bytes]:
    raise AssertionError("the hosts can connect")


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path)
    yield hosts
    hosts.source.close()
    hosts.reader.close()


def test_an_object_is_read_in_parts_and_nothing_stays_offered_or_pinned(hosts: Hosts) -> None:
    contents = hosts.put(OBJECT)
    assert hosts.get(OBJECT) == contents
    assert len(hosts.network.targets) == 2
    assert eventually(lambda: not hosts.network.offered and not hosts.pinned)


def test_all_reads_use_the_window_that_the_first_one_has_registered(hosts: Hosts) -> None:
    hosts.put(OBJECT)
    hosts.put(OTHER, remote_memory.LEAST_BYTES)
    hosts.get(OBJECT)
    hosts.get(OTHER)
    assert len(hosts.network.targets) == 3 and len(set(hosts.network.targets)) == 1


def test_the_bytes_of_small_objects_are_sent(hosts: Hosts) -> None:
    contents = hosts.put(OBJECT, remote_memory.LEAST_BYTES - 1)
    assert hosts.get(OBJECT) == contents
    assert not hosts.network.targets


def test_a_host_that_cannot_offer_its_memory_sends_bytes(hosts: Hosts) -> None:
    hosts.network.refuses = True
    contents = hosts.put(OBJECT)
    assert hosts.get(OBJECT) == contents
    assert not hosts.network.targets
    assert eventually(lambda: not hosts.pinned)


def test_after_a_failed_read_the_rest_is_sent_and_later_objects_as_well(hosts: Hosts) -> None:
    reads = itertools.count(1)

    def fail_second() -> None:
        if next(reads) == 2:
            raise OSError("the network is down")

    hosts.network.before_read = fail_second
    contents, other = hosts.put(OBJECT), hosts.put(OTHER)
    assert hosts.get(OBJECT) == contents
    assert hosts.get(OTHER) == other
    assert next(reads) == 3
    assert eventually(lambda: not hosts.network.offered and not hosts.pinned)


def test_an_object_whose_read_does_not_end_is_sent(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_memory, "READ_S", 0.05)
    may_end = threading.Event()
    hosts.network.before_read = lambda: may_end.wait(30)
    contents = hosts.put(OBJECT)
    assert hosts.get(OBJECT) == contents
    may_end.set()


def test_a_late_write_of_a_read_that_did_not_end_reaches_no_object(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_memory, "READ_S", 0.05)
    may_end, has_written = threading.Event(), threading.Event()

    def read(handle: bytes, target: memoryview) -> None:
        may_end.wait(30)
        target[:] = bytes(target.nbytes)
        has_written.set()

    monkeypatch.setattr(hosts.network, "read", read)
    contents = hosts.put(OBJECT)
    assert hosts.get(OBJECT) == contents
    may_end.set()
    assert has_written.wait(30)
    assert hosts.get(OBJECT) == contents


@pytest.mark.parametrize("known_to", ["reader", "source"])
def test_a_read_ends_at_once_when_either_host_knows_that_the_other_is_lost(
    hosts: Hosts, known_to: str
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def block() -> None:
        began.set()
        may_end.wait(30)

    def lose() -> None:
        began.wait(30)
        if known_to == "reader":
            hosts.set_hosts(hosts.reader, without="source")
        else:
            hosts.set_hosts(hosts.source, without="reader")

    hosts.network.before_read = block
    hosts.put(OBJECT)
    threading.Thread(target=lose).start()
    started = time.monotonic()
    with pytest.raises(ObjectUnreachableError, match="the connection ended before"):
        hosts.get(OBJECT)
    assert time.monotonic() - started < remote_memory.READ_S / 2
    assert eventually(lambda: not hosts.pinned and not hosts.network.offered)
    may_end.set()


def test_what_was_read_after_the_end_of_the_offer_is_no_object(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finish_unseen(_: float, function: Callable[[], object], __: object = None) -> object:
        """Call it without noticing the end of the connection meanwhile."""
        return function()

    monkeypatch.setattr(remote_memory, "finish_within", finish_unseen)
    hosts.network.before_read = lambda: hosts.set_hosts(hosts.source, without="reader")
    hosts.put(OBJECT, PART)
    with pytest.raises(ObjectUnreachableError):
        hosts.get(OBJECT)
    assert hosts.network.targets and not hosts.reader.store.contains(OBJECT)
