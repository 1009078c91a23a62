"""Sessions of proxies: what survives a lost connection, what ends, and who is refused."""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from monarch_client.attaching.errors import SessionLostError, SharedWorkersError
from monarch_client.gateway.proxies import (
    CodecError,
    MeshesProxy,
    ProxyError,
    RemoteError,
    ResultExpiredError,
    connect_proxies,
)
from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.runner.base.config import Authority
from tests.fake_ca import make_authority
from tests.integration.gateway.proxies.conftest import StartDriver
from tests.integration.gateway.proxies.programs.probe_values import Access
from tests.monarch_workers import MonarchWorkers
from tests.proxy_driver import CHECKOUT, ProxyDriver
from tests.waiting import eventually

pytestmark = pytest.mark.monarch

ACTORS = "tests.integration.gateway.proxies.programs.probe_actors"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Network:
    """The network between a client and its driver, which can be cut."""

    def __init__(self, driver: ProxyDriver) -> None:
        self._path = driver.address.removeprefix("unix:")
        self._open: list[tuple[asyncio.AbstractEventLoop, asyncio.StreamWriter]] = []
        self.is_up = True
        self.connections = 0

    async def dial(self) -> Stream:
        if not self.is_up:
            raise ConnectionRefusedError("the network is down")
        # From the checkout, where the driver's path is relative to.
        reader, writer = await asyncio.open_unix_connection(self._path)
        self.connections += 1
        self._open.append((asyncio.get_running_loop(), writer))
        return reader, writer

    def cut(self) -> None:
        """Close the connections now, and refuse others until `is_up`."""
        self.is_up = False
        for loop, writer in self._open:
            loop.call_soon_threadsafe(writer.transport.abort)


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where drivers' sockets have short relative paths."""
    monkeypatch.chdir(CHECKOUT)


@pytest.fixture
def network(start_driver: StartDriver) -> Network:
    return Network(start_driver())


@pytest.fixture
def meshes(network: Network) -> Iterator[MeshesProxy]:
    """Provide a session over a network that can be cut."""
    with connect_proxies(network.dial) as meshes:
        yield meshes


def probe(meshes: MeshesProxy, name: str = "Probe") -> Any:
    """Return one actor."""
    return meshes.trainers.slice(hosts=0).spawn_procs().spawn("probe", f"{ACTORS}:{name}")


def test_calls_survive_a_cut_and_arrive_once(meshes: MeshesProxy, network: Network) -> None:
    actor = probe(meshes)
    actor.rank.call_one().get(timeout=60)
    slow = actor.wait.call_one(1.0)
    before = [actor.note.call_one(number) for number in range(1, 101)]
    network.cut()
    during = [actor.note.call_one(number) for number in range(101, 201)]
    with pytest.raises(TimeoutError):
        during[-1].get(timeout=0.5)
    network.is_up = True
    assert slow.get(timeout=30) == 1.0
    assert [future.get(timeout=30) for future in (*before, *during)] == list(range(2, 202))
    assert actor.notes.call_one().get(timeout=30) == list(range(201))
    assert network.connections >= 2


def test_a_session_that_was_away_too_long_is_lost(start_driver: StartDriver) -> None:
    driver = start_driver("--away-limit-s", "1")
    network = Network(driver)
    with connect_proxies(network.dial, away_limit_s=1) as meshes:
        actor = probe(meshes)
        actor.rank.call_one().get(timeout=60)
        waiting = actor.wait.call_one(60)
        network.cut()
        with pytest.raises(SessionLostError, match="could not be reached for") as caught:
            waiting.get(timeout=30)
        assert caught.value.away_s >= 1
        with pytest.raises(SessionLostError):
            actor.rank.call_one()
    assert driver.process.wait(30) == 0
    assert "the client was away" in driver.log.read_text()


def test_a_driver_that_was_killed_is_reported(start_driver: StartDriver) -> None:
    driver = start_driver()
    with connect_proxies(driver.address, away_limit_s=1) as meshes:
        actor = probe(meshes)
        actor.rank.call_one().get(timeout=60)
        waiting = actor.wait.call_one(60)
        driver.process.kill()
        with pytest.raises(SessionLostError):
            waiting.get(timeout=30)


def test_the_end_of_a_session_ends_its_procs_and_no_worker(
    start_driver: StartDriver, workers: MonarchWorkers
) -> None:
    driver = start_driver()
    pids = workers.pids
    before = children_of(pids)
    with connect_proxies(driver.address) as meshes:
        actor = probe(meshes)
        actor.rank.call_one().get(timeout=60)
        assert children_of(pids) > before
        with pytest.raises(SharedWorkersError):
            meshes.trainers.shutdown()
    assert driver.process.wait(30) == 0
    assert eventually(lambda: children_of(pids) == before)
    assert workers.pids == pids


def children_of(pids: list[int]) -> set[str]:
    """List the processes that workers have started."""
    files = [Path(f"/proc/{pid}/task/{pid}/children") for pid in pids]
    threads = [file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return {child for file in (*files, *threads) for child in file.read_text().split()}


def test_a_canceled_call_has_no_result_and_the_actor_goes_on(meshes: MeshesProxy) -> None:
    actor = probe(meshes)
    slow = actor.wait.call_one(0.2)
    assert slow.cancel()
    assert slow.cancelled()
    assert actor.note.call_one(1).get(timeout=60) == 2
    done = actor.rank.call_one()
    done.get(timeout=60)
    assert not done.cancel()


def test_a_result_that_expired_is_an_error(meshes: MeshesProxy, network: Network) -> None:
    actor = probe(meshes)
    actor.rank.call_one().get(timeout=60)
    large = 150 << 20
    futures = [actor.zeros.call_one(large) for _ in range(2)]
    network.cut()
    last = futures[-1]
    with pytest.raises(TimeoutError):
        last.get(timeout=4)
    network.is_up = True
    errors = [future.exception(timeout=60) for future in futures]
    assert [type(error) for error in errors] == [ResultExpiredError, type(None)]


def test_an_exception_of_an_unknown_type_is_data(
    meshes: MeshesProxy, workers: MonarchWorkers
) -> None:
    error = probe(meshes, "Unprepared").fail.call_one().exception(timeout=60)
    assert isinstance(error, RemoteError)
    assert error.type_name.endswith("UnpreparedError")
    assert "in fail" in error.traceback
    assert (error.rank, error.host) == (0, workers.hosts[0])


def test_what_is_not_data_is_refused_on_both_ways(meshes: MeshesProxy) -> None:
    actor = probe(meshes)
    with pytest.raises(CodecError, match=r"args\[0\]\['fn'\] is a "):
        actor.echo.call_one({"fn": print})
    error = actor.opaque.call_one().exception(timeout=60)
    assert "result is a object, which is not data" in str(error)


def test_each_answer_of_a_call_that_the_cluster_cannot_read_is_its_error(
    meshes: MeshesProxy,
) -> None:
    @dataclass
    class Local:
        """A class of which the cluster has no module."""

    actors = meshes.trainers.spawn_procs().spawn("probe", f"{ACTORS}:Probe")
    # Flags that have no name, and the container of a torch module's state.
    for value in (Access(0), OrderedDict(weight=[1.0])):
        assert actors.slice(hosts=0).echo.call_one(value).get(timeout=60) == value
    for future in [*actors.echo.stream(Local()), actors.echo.call(Local())]:
        assert "no class" in str(future.exception(timeout=60))


def test_pickles_travel_only_at_the_users_request(start_driver: StartDriver) -> None:
    value = complex
    driver = start_driver()
    with connect_proxies(driver.address, pickle=True) as meshes:
        actor = probe(meshes)
        error = actor.echo.call_one(value).exception(timeout=60)
        assert "result is a type, which is not data" in str(error)
    driver = start_driver()
    with connect_proxies(driver.address, pickle=True, pickle_results=True) as meshes:
        assert probe(meshes).echo.call_one(value).get(timeout=60) is complex


def test_a_second_program_cannot_join_a_session(meshes: MeshesProxy, network: Network) -> None:
    with pytest.raises(ProxyError, match="belongs to another program"):
        connect_proxies(network.dial)
    assert probe(meshes).rank.call_one().get(timeout=60) == 0


def test_a_mesh_of_another_session_is_refused(
    meshes: MeshesProxy, start_driver: StartDriver
) -> None:
    actor = probe(meshes)
    with (
        connect_proxies(start_driver().address) as others,
        pytest.raises(CodecError, match="another session"),
    ):
        actor.echo.call_one(others.trainers)


def test_a_client_needs_a_certificate_of_the_attempt_and_session(
    start_driver: StartDriver, workers: MonarchWorkers, tmp_path: Path
) -> None:
    driver = start_driver("--tls-subject", "mportal node", listen="tcp:127.0.0.1:0")
    stranger = tmp_path / "stranger"
    mint_leaf(Authority(*make_authority().values()), ["127.0.0.1"], stranger, sys.executable)
    for certificates in (None, stranger):
        with pytest.raises(ProxyError):
            connect_proxies(driver.address, certificates=certificates, away_limit_s=0.5)
    with connect_proxies(driver.address, certificates=workers.certificates) as meshes:
        assert probe(meshes).rank.call_one().get(timeout=60) == 0
    driver = start_driver("--tls-subject", "laptop 17", listen="tcp:127.0.0.1:0")
    with pytest.raises(ProxyError, match="that of another session"):
        connect_proxies(driver.address, certificates=workers.certificates)
