"""Mesh proxies through the portal: the link process carries a session's bytes to its driver."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from monarch_client.attaching.errors import SessionLostError
from monarch_client.gateway.errors import VersionMismatchError
from monarch_client.gateway.opening import Opening
from monarch_client.gateway.proxy_connection import ProxyConnection
from tests.integration.gateway.proxies.conftest import StartDriver
from tests.integration.gateway_programs.stand_in import StandIn
from tests.monarch_workers import MonarchWorkers

pytestmark = [pytest.mark.monarch, pytest.mark.feature("S1.2")]

ACTORS = "tests.integration.gateway.proxies.programs.probe_actors"


@pytest.fixture
def gateway(workers: MonarchWorkers, start_driver: StartDriver) -> Iterator[StandIn]:
    """Provide a gateway whose links end at a driver."""
    driver = start_driver("--tls-subject", "laptop 7", listen="tcp:127.0.0.1:0")
    port = int(driver.address.rpartition(":")[2])
    hello = {
        "python": "3.8.1",
        "torchmonarch": "none",
        "workers": [{"rank": 0, "host": "node-0", "address": workers.addresses[0]}],
        "meshes": {"trainers": [0]},
    }
    stand_in = StandIn(workers.authority, hello, ("127.0.0.1", port))
    yield stand_in
    stand_in.close()


@pytest.fixture
def connection(gateway: StandIn) -> Iterator[ProxyConnection]:
    """Connect, whatever Python and torchmonarch the workers have."""
    opened = Opening(gateway.url, "job 7", 7, gateway.ticket)
    made = ProxyConnection(opened, None)
    yield made
    made.close()


def test_calls_go_on_after_cuts_and_a_killed_link_process(
    connection: ProxyConnection, gateway: StandIn
) -> None:
    with connection as meshes:
        procs = meshes.trainers.slice(hosts=0).spawn_procs()
        actor = procs.spawn("probe", f"{ACTORS}:Probe")
        assert actor.note.call_one(1).get(timeout=60) == 2
        links = [each for each in gateway.requests if each["op"] == "link"]
        assert {each["kind"] for each in links} == {"proxy"}
        slow = actor.wait.call_one(1.0)
        gateway.cut_for(1.0)
        later = actor.note.call_one(2)
        assert (slow.get(timeout=60), later.get(timeout=60)) == (1.0, 3)
        os.kill(connection.link_pid, signal.SIGKILL)
        assert actor.note.call_one(3).get(timeout=60) == 4


def test_a_connection_that_pickles_needs_the_python_of_the_workers(gateway: StandIn) -> None:
    opened = Opening(gateway.url, "job 7", 7, gateway.ticket)
    with pytest.raises(VersionMismatchError, match=r"Python 3\.8"):
        ProxyConnection(opened, None, pickle=True)


def test_a_session_that_the_portal_ends_is_lost_with_its_reason(
    connection: ProxyConnection, gateway: StandIn
) -> None:
    procs = connection.meshes.trainers.slice(hosts=0).spawn_procs()
    actor = procs.spawn("probe", f"{ACTORS}:Probe")
    waiting = actor.wait.call_one(60)
    gateway.send(op="close", detail="its job has ended")
    with pytest.raises(SessionLostError, match="its job has ended"):
        waiting.get(timeout=30)
    with pytest.raises(SessionLostError):
        actor.rank.call_one()
