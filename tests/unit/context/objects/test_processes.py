"""Other processes of the host: what they read, what stays after SIGKILL, and forks."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from monarch_client.context.objects import (
    HostStore,
    ObjectStoreError,
    StoreClient,
    StoreFullError,
    StoreServer,
)
from tests.waiting import eventually

pytestmark = pytest.mark.slow
MB = 1_000_000
PRELUDE = """
import os, sys
import numpy as np
from monarch_client.context.objects import StoreClient
client = StoreClient.connect(sys.argv[1])
def show(text):
    print(text, flush=True)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HostStore]:
    store = HostStore(50 * MB, tmp_path)
    yield store
    store.close()


@pytest.fixture
def server(store: HostStore) -> Iterator[StoreServer]:
    with TemporaryDirectory() as folder:  # the path of a socket is short
        server = StoreServer(store, Path(folder))
        yield server
        server.close()


@pytest.fixture
def client(store: HostStore) -> Iterator[StoreClient]:
    client = StoreClient.of_store(store)
    yield client
    client.close()


@contextmanager
def program(server: StoreServer, code: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program with a client of its own; kill it at the end."""
    command = [sys.executable, "-c", PRELUDE + code, server.address]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_killed_reader_and_writer_leave_nothing(
    store: HostStore, server: StoreServer, client: StoreClient
) -> None:
    """Kill a process that reads and refers to an object, and writes another one."""
    client.put(b"read", np.arange(1_000_000))
    code = """
value = client.get(b"read")
client.add_reference(b"read")
client.flush()
client._calls.create(b"unsealed", 20_000_000, 0)
show(value.sum())
sys.stdin.read()
"""
    with program(server, code) as process:
        assert process.stdout.readline().strip() == str(sum(range(1_000_000)))
        store.change_references(0, {b"read": -1})
        usage = store.usage()
        assert usage.in_use == usage.used > 28 * MB and store.contains(b"read")
        process.send_signal(signal.SIGKILL)
        assert eventually(lambda: store.usage().used == 0)
        assert store.usage().objects == 0


def test_an_inherited_connection_does_not_keep_what_a_process_had(
    store: HostStore, server: StoreServer, client: StoreClient
) -> None:
    client.put(b"a", np.arange(100_000))
    code = """
value = client.get(b"a")
if (child := os.fork()) == 0:
    sys.stdin.read()
    os._exit(0)
show(child)
sys.stdin.read()
"""
    with program(server, code) as process:
        child = int(process.stdout.readline())
        assert store.usage().in_use > 0
        process.kill()
        assert eventually(lambda: store.usage().in_use == 0)
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_is_a_process_of_its_own(
    store: HostStore, server: StoreServer, client: StoreClient
) -> None:
    """Check that it ends no pin of its parent, and reads with a connection of its own."""
    client.put(b"a", np.arange(100_000))
    client.put(b"b", np.arange(200_000))
    code = """
value = client.get(b"a")
if (child := os.fork()) == 0:
    del value
    other = client.get(b"b")
    client.flush()
    show(other.sum())
    os._exit(0)
os.waitpid(child, 0)
show(value.sum())
sys.stdin.read()
"""
    with program(server, code) as process:
        assert process.stdout.readline().strip() == str(sum(range(200_000)))
        assert process.stdout.readline().strip() == str(sum(range(100_000)))
        assert eventually(lambda: store.usage().in_use < 900_000)
        assert store.usage().in_use > 800_000


def test_a_view_in_a_circle_of_references_is_collected_without_a_crash(
    server: StoreServer, client: StoreClient
) -> None:
    client.put(b"view", pickle.PickleBuffer(bytes(1_000_000)))
    code = """
import gc
circle = [client.get(b"view")]
circle.append(circle)
show(type(circle[0]).__name__)
del circle
gc.collect()
show("alive")
"""
    with program(server, code) as process:
        assert process.stdout.read().split() == ["memoryview", "alive"]


def test_a_process_writes_reads_and_is_refused(
    store: HostStore, server: StoreServer, client: StoreClient
) -> None:
    code = """
client.put(b"mine", {"rows": np.full(5_000_000, 7, np.uint8)})
kept = []
try:
    for number in range(20):
        client.put(b"%d" % number, np.zeros(5_000_000, np.uint8))
        kept.append(client.get(b"%d" % number))
except Exception as error:
    show(f"{type(error).__name__} {len(kept)}")
sys.stdin.read()
"""
    with program(server, code) as process:
        assert process.stdout.readline().split() == [StoreFullError.__name__, "9"]
        process.kill()
        assert eventually(lambda: store.usage().in_use == 0)
    assert (client.get(b"mine")["rows"] == 7).all()


def test_threads_of_one_client_have_requests_of_their_own(
    store: HostStore, server: StoreServer
) -> None:
    client = StoreClient.connect(server.address)

    def work(number: int) -> bool:
        object_id = b"%d" % number
        client.put(object_id, np.full(100_000, number))
        return bool((client.get(object_id) == number).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))
    client.flush()
    assert store.usage().in_use == 0
    client.close()


def test_a_client_whose_store_has_ended_reports_it(server: StoreServer) -> None:
    client = StoreClient.connect(server.address)
    client.put(b"a", np.arange(100_000))
    value = client.get(b"a")
    server.close()
    with pytest.raises(ObjectStoreError, match="has ended"):
        client.get(b"a")
    assert value.sum() == sum(range(100_000))
    del value
    client.close()


def test_a_hundred_thousand_small_objects_leave_memory_flat(
    store: HostStore, client: StoreClient
) -> None:
    def work(count: int) -> None:
        for number in range(count):
            client.put(b"a%d" % number, number)
            assert client.get(b"a%d" % number) == number
            client.drop_reference(b"a%d" % number)
        client.flush()

    work(2_000)
    before = resident_kb()
    work(100_000)
    assert (store.usage().used, store.usage().objects) == (0, 0)
    assert resident_kb() - before < 5_000
    assert store.arena.grown <= store.limit
    assert threading.active_count() < 20


def resident_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])
