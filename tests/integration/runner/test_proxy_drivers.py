"""A program without torchmonarch drives the meshes of a job through the head's gateway process."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from monarch_client.gateway.proxies import MeshesProxy, connect_proxies
from monarch_client.runner.scripts.mportal_proxies.outbox import KEEP_BYTES
from tests.fake_ca import make_authority
from tests.gateway_way import Way, certified
from tests.runner_harness import RunnerRig, wait_until
from tests.stand_in_gateway import StandInGateway

pytestmark = [pytest.mark.monarch, pytest.mark.feature("S1.2")]

ACTORS = """
from monarch.actor import Actor, endpoint
class Counter(Actor):
    def __init__(self):
        self.count = 0
    @endpoint
    async def add(self, number):
        self.count += number
        return self.count
    @endpoint
    async def fill(self, size):
        with open("filled", "ab") as file:
            file.write(b".")
        return bytes(size)
"""
SESSION = 9
MB = 1_000_000


@pytest.fixture
def gateway() -> Iterator[StandInGateway]:
    made = StandInGateway("secret-token")
    yield made
    made.close()


@pytest.fixture
def rig(make_rig: Callable[..., RunnerRig], gateway: StandInGateway) -> RunnerRig:
    """Start a job with two workers, no driver, and a module of actors in its code."""
    rig = make_rig(2, run="", meshes={"trainers": 2}, gateway=True, tls=make_authority())
    for rank in range(2):
        workdir = rig.root(rank) / "workdir"
        workdir.mkdir(parents=True, exist_ok=True)
        (workdir / "counters.py").write_text(ACTORS)
    rig.ingest.gateway_port = gateway.port
    rig.start()
    gateway.wait_for_message("hello")
    return rig


@pytest.fixture
def certificates(rig: RunnerRig, gateway: StandInGateway, tmp_path: Path) -> Path:
    """Have the head sign a certificate for the session."""
    return certified(gateway, tmp_path / "laptop", SESSION)


@pytest.fixture
def way(gateway: StandInGateway) -> Iterator[Way]:
    made = Way(gateway, SESSION, kind="proxy")
    yield made
    made.close()


@pytest.fixture
def meshes(way: Way, certificates: Path) -> Iterator[MeshesProxy]:
    with connect_proxies(way.address, certificates=certificates) as meshes:
        yield meshes


def counter(meshes: MeshesProxy) -> Any:
    procs = meshes.trainers.spawn_procs(per_host={"procs": 1})
    return procs.spawn("counter", "counters:Counter")


def pids_of(rig: RunnerRig, text: bytes) -> list[int]:
    """List the processes of the head whose command line has a text."""
    found = []
    for pid in rig.processes(0):
        with suppress(OSError):
            if text in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_calls_reach_the_jobs_own_actors(meshes: MeshesProxy, rig: RunnerRig) -> None:
    actors = counter(meshes)
    assert list(actors.add.call(3).get(timeout=60).values()) == [3, 3]
    assert actors.slice(hosts=1).add.call_one(1).get(timeout=60) == 4
    rig.stop_rank(0)
    rig.wait()
    assert rig.ingest.end["reason"] == "CANCELLED_BY_USER"
    assert rig.processes() == []


def test_a_session_survives_a_cut_and_a_killed_process_of_the_head(
    meshes: MeshesProxy, rig: RunnerRig, way: Way, gateway: StandInGateway
) -> None:
    actors = counter(meshes)
    actors.add.call(1).get(timeout=60)
    way.cut()
    assert list(actors.add.call(1).get(timeout=60).values()) == [2, 2]
    os.kill(pids_of(rig, b"head_process")[0], signal.SIGKILL)
    gateway.wait_for_heads(2)
    way.cut()
    assert list(actors.add.call(1).get(timeout=60).values()) == [3, 3]
    gateway.order("sessions", sessions=[SESSION])
    assert list(actors.add.call(1).get(timeout=60).values()) == [4, 4]
    # The session has ended while the head was away: its driver is that of a former process.
    way.close()
    gateway.order("sessions", sessions=[SESSION + 1])
    wait_until(lambda: not pids_of(rig, b"mportal_proxies"))
    assert not list(rig.root(0).rglob(f"proxy-{SESSION}"))


def test_the_end_of_a_session_ends_its_driver(
    meshes: MeshesProxy, rig: RunnerRig, way: Way, gateway: StandInGateway
) -> None:
    counter(meshes).add.call(1).get(timeout=60)
    assert len(pids_of(rig, b"mportal_proxies")) == 1
    # The portal dials no more links of a session that has ended.
    way.close()
    gateway.order("close", session=SESSION)
    wait_until(lambda: not pids_of(rig, b"mportal_proxies"))
    assert len(pids_of(rig, b"head_process")) == 1


def test_results_that_a_laptop_does_not_read_take_little_memory_and_arrive_later(
    meshes: MeshesProxy, rig: RunnerRig, way: Way
) -> None:
    actor = counter(meshes).slice(hosts=0)
    actor.fill.call_one(8 * MB).get(timeout=60)
    pids = pids_of(rig, b"mportal_proxies") + pids_of(rig, b"head_process")
    before = [peak_of(pid) for pid in pids]
    way.reads.clear()
    futures = [actor.fill.call_one(MB) for _ in range(1000)]
    filled = rig.root(0) / "workdir" / "filled"
    # The driver holds this much, and then makes no further calls.
    wait_until(lambda: filled.stat().st_size * MB > KEEP_BYTES, 120)
    way.reads.set()
    assert filled.stat().st_size < len(futures)
    assert {len(future.get(timeout=120)) for future in futures} == {MB}
    after = [peak_of(pid) for pid in pids]
    assert all(high < low + 300 * MB for low, high in zip(before, after, strict=True))


def peak_of(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def test_workers_without_tls_have_no_proxies(
    make_rig: Callable[..., RunnerRig], gateway: StandInGateway
) -> None:
    rig = make_rig(1, run="", meshes={"trainers": 1}, gateway=True)
    rig.ingest.gateway_port = gateway.port
    rig.start()
    gateway.wait_for_message("hello")
    gateway.dial(link=3, kind="proxy")
    assert "have no TLS" in gateway.wait_for_message("dial_failed", link=3)["detail"]
