"""Programs outside of a job drive its meshes through a whole portal, down to the workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_jobs import JOBS, newest
from tests.own_network import OwnNetwork
from tests.portal_process import CHECKOUT, PortalProcess
from tests.waiting import eventually

PRELUDE = """
import os, signal, socket, sys, time
from monarch.actor import Actor, endpoint
from monarch_client.attaching.errors import HostLostError, SessionLostError
from monarch_client.gateway import connect

class Counter(Actor):
    def __init__(self):
        self.seen = []

    @endpoint
    def add(self, number, pause_s=0.0):
        time.sleep(pause_s)
        self.seen.append(number)
        return os.environ["SKYPILOT_NODE_RANK"]

    @endpoint
    def all(self):
        return self.seen

    @endpoint
    def worker(self):
        return os.getppid()

def spawned(meshes):
    return meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)

"""
KILLS_THE_GATEWAY = """
with connect() as meshes:
    counters = spawned(meshes)
    print("ranks", sorted(rank for _, rank in counters.add.call(0).get(timeout=60).items()))
    pending = counters.add.call(1, 2.0)
    time.sleep(0.5)
    os.kill(int(sys.argv[1]), signal.SIGKILL)
    pending.get(timeout=60)
    for number in range(2, 50):
        counters.add.call(number).get(timeout=60)
    seen = [numbers for _, numbers in counters.all.call().get(timeout=60).items()]
    print("in order", seen == [list(range(50))] * 2)
"""
IS_CUT = """
print("networks", [name for _, name in socket.if_nameindex()])
with connect("attached") as meshes:
    counters = spawned(meshes)
    counters.add.call(0).get(timeout=60)
    print("calling", flush=True)
    counters.add.call(1, 3.0).get(timeout=60)
    print("answered", flush=True)
    try:
        pid = counters.slice(hosts=1).worker.call_one().get(timeout=60)
        pending = counters.add.call(2, 120.0)
        os.kill(pid, signal.SIGKILL)
        pending.get(timeout=90)
    except HostLostError as error:
        print("lost", error.hosts, flush=True)
"""
IS_AWAY = """
with connect("left", away_limit_s=float(sys.argv[1])) as meshes:
    counters = spawned(meshes)
    print("worker", counters.worker.call_one().get(timeout=60))
    pending = counters.add.call(1, 1.0)
    print("calling", flush=True)
    try:
        pending.get(timeout=900)
        print("answered", flush=True)
    except SessionLostError as error:
        print("lost", error.away_s >= float(sys.argv[1]), error, flush=True)
"""
AWAY_S = 3
SPEC = """
name: {name}
num_nodes: {hosts}
resources: {{infra: local}}
portal:
  meshes: {{trainers: {hosts}}}
  gateway: true
  idle: {{minutes: 10}}
"""


@pytest.mark.feature("S1.1")
@pytest.mark.timeout(300)
def test_a_dev_session_outlives_a_killed_gateway_and_ends_with_its_program(
    portal: PortalProcess, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(PRELUDE + KILLS_THE_GATEWAY)
    done = portal.mportal(
        "dev", "--mesh", "trainers=2", "--infra", "local", "--name", "my-dev", "--",
        sys.executable, str(program), str(portal.pids()["gateway"]),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr + portal.logs()
    assert "ranks ['0', '1']" in done.stdout
    assert "in order True" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    job = newest(portal, "my-dev")
    assert eventually(lambda: newest(portal, "my-dev")["status"] == "CANCELLED"), job
    with portal.client() as client:
        sessions = client.get(f"{JOBS}/{job['id']}/gateway-sessions").json()["results"]
    assert [(each["state"], each["bytes_up"] > 0) for each in sessions] == [("closed", True)]


class Laptop:
    """A laptop whose network reaches the portal's port and nothing else."""

    def __init__(self, portal: PortalProcess, folder: Path) -> None:
        self.network = OwnNetwork(int(portal.url.rpartition(":")[2]))
        self._portal, self._folder = portal, folder
        self._programs: list[subprocess.Popen[bytes]] = []

    def start(self, text: str, *arguments: object) -> Path:
        """Start a program and return its log."""
        file = self._folder / f"program-{len(self._programs)}.py"
        file.write_text(PRELUDE + text)
        log = file.with_suffix(".log")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "PYTHONPATH": str(CHECKOUT),
            "MPORTAL_URL": self._portal.url,
            "MPORTAL_TOKEN": self._portal.token,
        }
        with log.open("wb") as output:
            program = subprocess.Popen(
                [*self.network.prefix, sys.executable, file, *map(str, arguments)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._programs.append(program)
        return log

    def close(self) -> None:
        """End it with its programs."""
        for program in self._programs:
            program.kill()
            program.wait()
        self.network.close()


@pytest.fixture
def laptop(portal: PortalProcess, tmp_path: Path) -> Iterator[Laptop]:
    laptop = Laptop(portal, tmp_path)
    yield laptop
    laptop.close()


def run_job(portal: PortalProcess, folder: Path, name: str, hosts: int) -> None:
    """Start a job whose workers wait for laptops."""
    (folder / "job.yaml").write_text(SPEC.format(name=name, hosts=hosts))
    submitted = portal.mportal("submit", str(folder / "job.yaml"))
    assert submitted.returncode == 0, submitted.stderr
    assert eventually(lambda: newest(portal, name)["status"] == "RUNNING", timeout_s=60)


@pytest.mark.feature("S1.1")
@pytest.mark.root
@pytest.mark.timeout(300)
def test_a_program_that_reaches_nothing_but_the_portal_survives_a_silent_cut_and_names_a_lost_host(
    portal: PortalProcess, laptop: Laptop, tmp_path: Path
) -> None:
    run_job(portal, tmp_path, "attached", 2)
    log = laptop.start(IS_CUT)
    _wait_for("calling", log)
    laptop.network.relays[0].cut()
    _wait_for("is not reached", log)
    laptop.network.relays[0].restore()
    restored_at = time.monotonic()
    _wait_for("answered", log)
    assert time.monotonic() - restored_at < 6
    _wait_for("lost", log)
    text = log.read_text()
    assert "networks ['lo']" in text
    assert "Traceback" not in text, text


@pytest.mark.feature("S1.1")
@pytest.mark.root
@pytest.mark.timeout(300)
def test_a_program_that_is_away_for_too_long_gets_advice_and_the_workers_stay(
    portal: PortalProcess, laptop: Laptop, tmp_path: Path
) -> None:
    run_job(portal, tmp_path, "left", 1)
    first = laptop.start(IS_AWAY, AWAY_S)
    _wait_for("calling", first)
    laptop.network.relays[0].cut()
    _wait_for("lost True", first)
    assert "start the program again" in first.read_text()
    laptop.network.relays[0].restore()
    again = laptop.start(IS_AWAY, AWAY_S)
    _wait_for("answered", again)
    workers = [re.findall(r"worker (\d+)", log.read_text()) for log in (first, again)]
    assert workers[0] == workers[1] != []


def _wait_for(words: str, log: Path) -> None:
    assert eventually(lambda: words in log.read_text(), timeout_s=90), log.read_text()
