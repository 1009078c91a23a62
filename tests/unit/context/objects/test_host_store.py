"""The store of a host within one process: eviction, refusals, views and what they keep."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from monarch_client.context.objects import (
    HostStore,
    ObjectNotFoundError,
    ObjectStoreError,
    StoreClient,
    StoreFullError,
)

MB = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HostStore]:
    """Provide a store of 10 MB that spills."""
    store = HostStore(10 * MB, tmp_path / "spill")
    yield store
    store.close()


@pytest.fixture
def client(store: HostStore) -> Iterator[StoreClient]:
    """Provide the client of the store's own process."""
    client = StoreClient.of_store(store)
    yield client
    client.close()


def rows(number: int, size: int = 3 * MB) -> np.ndarray:
    return np.full(size, number, np.uint8)


def test_what_does_not_fit_is_spilled_and_restored(store: HostStore, client: StoreClient) -> None:
    for number in range(5):
        client.put(b"%d" % number, rows(number))
    assert store.usage().spilled > 5 * MB
    for number in range(5):
        assert (client.get(b"%d" % number) == number).all()


def test_the_spill_file_has_no_name(store: HostStore, client: StoreClient, tmp_path: Path) -> None:
    for number in range(5):
        client.put(b"%d" % number, rows(number))
    assert store.usage().spilled and list((tmp_path / "spill").iterdir()) == []


def test_the_least_recently_used_object_is_spilled_first(
    store: HostStore, client: StoreClient
) -> None:
    for number in range(3):
        client.put(b"%d" % number, rows(number))
    client.get(b"0")
    client.flush()
    client.put(b"3", rows(3))
    on_disk = [each.object_id for each in store._ledger if each.offset is None]
    assert on_disk == [b"1"]


def test_a_copy_is_dropped_before_anything_is_spilled(
    store: HostStore, client: StoreClient
) -> None:
    client.put(b"own", rows(0))
    offset = store.create(b"copy", 3 * MB + 1000, 0, is_copy=True)
    store.seal(b"copy", 0)
    assert offset is not None and store.contains(b"copy")
    client.put(b"1", rows(1))
    client.put(b"2", rows(2))
    assert store.usage().spilled == 0 and not store.contains(b"copy")


def test_a_full_store_names_bytes_and_limit(tmp_path: Path) -> None:
    store = HostStore(10 * MB, tmp_path, release_wait_s=0)
    client, kept = StoreClient.of_store(store), []
    with pytest.raises(StoreFullError, match=r"no room for 3 MB: its limit is 10 MB, and 9"):
        for number in range(5):
            client.put(b"%d" % number, rows(number))
            kept.append(client.get(b"%d" % number))
    with pytest.raises(StoreFullError, match="no room for 11 MB"):
        client.put(b"large", rows(0, 11 * MB))
    client.close()
    store.close()


def test_without_a_directory_it_refuses_instead_of_spilling() -> None:
    store = HostStore(10 * MB)
    client = StoreClient.of_store(store)
    with pytest.raises(StoreFullError):
        for number in range(5):
            client.put(b"%d" % number, rows(number))
    assert (client.get(b"0") == 0).all()
    client.close()


def test_a_full_store_waits_for_a_process_that_just_dropped_a_value(store: HostStore) -> None:
    store.create(b"a", 9 * MB, creator=101)
    store.seal(b"a", 101)
    store.pin(b"a", 101)
    with ThreadPoolExecutor() as pool:
        other = pool.submit(store.create, b"b", 9 * MB, 102)
        store.unpin(101, {b"a": 1})
        assert other.result(10) is not None


def test_a_disk_that_is_full_refuses_and_loses_nothing(
    store: HostStore, client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreFullError, match="No space left on device"):
        for number in range(5):
            client.put(b"%d" % number, rows(number))
    assert [bool((client.get(b"%d" % each) == each).all()) for each in range(3)] == [True] * 3
    assert store.usage().spilled == 0


def test_an_object_that_cannot_be_restored_leaks_no_memory(
    store: HostStore, client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        client.put(b"%d" % number, rows(number))

    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", broken)
    with pytest.raises(ObjectStoreError, match="Input/output error"):
        client.get(b"0")
    store.change_references(0, {b"%d" % each: -1 for each in range(4)})
    usage = store.usage()
    assert (usage.used, usage.spilled) == (0, 0)


def test_memory_stays_while_a_view_of_a_view_is_in_use(
    store: HostStore, client: StoreClient
) -> None:
    client.put(b"a", {"x": rows(7), "y": 1})
    part = client.get(b"a")["x"][10:20]
    store.change_references(0, {b"a": -1})
    client.flush()
    with pytest.raises(ObjectNotFoundError):
        client.get(b"a")
    assert store.usage().used > 0 and part.tolist() == [7] * 10
    del part
    client.flush()
    assert store.usage().used == 0


def test_values_outlive_the_store_and_its_client() -> None:
    store = HostStore(10 * MB)
    client = StoreClient.of_store(store)
    client.put(b"a", rows(5))
    value = client.get(b"a")
    client.close()
    store.close()
    del client, store
    assert (value == 5).all()


def test_memory_that_was_freed_is_used_again(store: HostStore, client: StoreClient) -> None:
    for number in range(20):
        client.put(b"%d" % number, rows(number))
        store.change_references(0, {b"%d" % number: -1})
    assert store.arena.allocator.high_water == store.arena.allocator.used == 0
    assert store.arena.grown <= store.limit


def test_a_value_that_cannot_be_written_leaves_nothing(
    store: HostStore, client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store.arena.mapping, "write", fail)
    with pytest.raises(KeyboardInterrupt):
        client.put(b"a", rows(1))
    assert (store.usage().used, store.contains(b"a")) == (0, False)


def test_an_object_is_stored_once(store: HostStore, client: StoreClient) -> None:
    client.put(b"a", rows(1))
    client.put(b"a", rows(2))
    assert client.get(b"a")[0] == 1 and store.usage().objects == 1


def test_a_second_creator_waits_for_the_end_of_the_first(store: HostStore) -> None:
    store.create(b"a", 100, creator=101)
    with ThreadPoolExecutor() as pool:
        second = pool.submit(store.create, b"a", 100, 102)
        store.process_ended(101)
        assert second.result(10) is not None


def test_a_seal_that_is_read_after_the_end_of_its_owner_leaves_nothing(store: HostStore) -> None:
    store.create(b"late", MB, creator=101, owner=-7)
    store.process_ended(-7)
    with pytest.raises(ObjectNotFoundError):
        store.seal(b"late", 101)
    assert store.usage().objects == 0


def test_a_reference_that_was_noted_before_the_object_keeps_it(store: HostStore) -> None:
    store.change_references(101, {b"a": 1})
    store.create(b"a", 100, creator=102)
    store.seal(b"a", 102)
    store.change_references(0, {b"a": -1})
    assert store.contains(b"a")
    store.process_ended(101)
    assert not store.contains(b"a")


def test_a_process_cannot_drop_references_of_others(store: HostStore, client: StoreClient) -> None:
    client.put(b"a", rows(1))
    with pytest.raises(ObjectStoreError, match="Process 101 has dropped more references"):
        store.change_references(101, {b"a": -1})
    assert store.contains(b"a")


def test_many_threads_that_evict_each_other_all_get_their_objects(store: HostStore) -> None:
    clients = [StoreClient.of_store(store) for _ in range(4)]
    start = threading.Barrier(4)

    def work(number: int) -> bool:
        start.wait()
        for step in range(6):
            clients[number].put(b"%d-%d" % (number, step), rows(number, 2 * MB))
        return all((clients[number].get(b"%d-%d" % (number, s)) == number).all() for s in range(6))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [True] * 4
    for each in clients:
        each.close()


def test_errors_travel_between_processes() -> None:
    full = pickle.loads(pickle.dumps(StoreFullError(5, 10, 6, "")))
    assert (full.requested, full.limit, full.in_use) == (5, 10, 6)
    assert pickle.loads(pickle.dumps(ObjectNotFoundError(b"a"))).object_id == b"a"
