"""Run the same programs in a job's driver, attached from a laptop, and on proxies, while parts die.

The three run at once on one job. The laptops' network and that of the job reach the portal's port
and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import victims
from tests.faults.fleet import Fleet
from tests.integration.gateway.proxies.programs import run_programs
from tests.integration.gateway.proxies.programs.mesh_deaths import ANSWERED, DEATHS, PARTS
from tests.integration.gateway.proxies.programs.mesh_programs import PROGRAMS
from tests.own_network import OwnNetwork
from tests.portal_process import CHECKOUT
from tests.waiting import eventually

pytestmark = [
    pytest.mark.monarch,
    pytest.mark.together,
    pytest.mark.timeout(400),
    pytest.mark.root("jobs of own_network"),
]
WAYS = ("driver", "attached", "proxies")
MODULE = "tests.integration.gateway.proxies.programs.run_programs"
SPEC = {
    "name": "ways",
    "num_nodes": 2,
    "resources": {"infra": "local"},
    "run": f"exec python -m {MODULE} driver",
    "portal": {"gateway": True, "meshes": {"trainers": 2}, "retry": {"max_recoveries": 0}},
}
# Of programs, and of lives between two deaths.
PATIENCE_S = 120


class Ways:
    """The three programs, by their way."""

    def __init__(self, folder: Path) -> None:
        self.fleet = Fleet(1, gateways=1, own_network=True)
        self._folder = folder
        self._laptop: OwnNetwork | None = None
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self.job = 0

    def start(self) -> None:
        """Start the portal, the job, and the programs on the laptop."""
        fleet = self.fleet
        fleet.start()
        self._laptop = OwnNetwork(fleet.door.port)
        self._submit()
        running = lambda: fleet.job(self.job)["status"] == "RUNNING"  # noqa: E731
        assert eventually(running, timeout_s=PATIENCE_S), fleet.logs()
        for way in WAYS[1:]:
            argv = [*self._laptop.prefix, sys.executable, "-m", MODULE, way, str(self.job)]
            with self._log(way).open("wb") as log:
                self._programs[way] = subprocess.Popen(
                    argv, cwd=self._folder, env=self._laptop_environment(), stdout=log, stderr=log
                )

    def close(self) -> None:
        """End everything."""
        for program in self._programs.values():
            program.kill()
            program.wait()
        if self._laptop is not None:
            self._laptop.close()
        self.fleet.close()

    def printed(self, way: str) -> dict[tuple[str, str], str]:
        """Return the lines of a program by kind and name."""
        if way == "driver":
            lines = self.fleet.lines(self.job)
        else:
            lines = self._log(way).read_text().splitlines()
        found = {}
        for line in lines:
            if match := re.fullmatch(r"(program|begun|survived) (\[.*\])", line):
                name, *rest = json.loads(match[2])
                found[match[1], name] = "".join(rest)
        return found

    def wait_for(self, kind: str, name: str, ways: tuple[str, ...] = WAYS) -> None:
        """Wait until the programs have printed such a line."""
        for way in ways:
            is_there = lambda way=way: (kind, name) in self.printed(way)  # noqa: E731
            assert eventually(is_there, timeout_s=PATIENCE_S), self.report(way)

    def strike(self, death: str) -> None:
        """Kill a part, which is started again, or a host."""
        if death == "gateway":
            self.fleet["gateway-0"].kill()
            self.fleet.start("gateway-0")
        elif death == "head":
            [head] = self.heads()
            victims.kill([head])
            assert eventually(lambda: self.heads() not in ([], [head])), self.fleet.logs()
        elif death == "host":
            victims.kill(victims.host(self.node(1)))
        elif death in PARTS:
            self.fleet.kill_server(death)

    def node(self, rank: int) -> Path:
        """Return the directory of a node of the first attempt."""
        [folder] = (self.fleet.place.home.path / "local").glob(f"mp*-{self.job}-1")
        return folder / f"rank-{rank}"

    def heads(self) -> list[int]:
        """Find the head's gateway process."""
        # A child that a runner has just made may still look like the runner.
        runners = victims.runner_on(self.node(0))
        children = [pid for runner in runners for pid in victims.children_of(runner)]
        return [pid for pid in children if b"gateway.head_process" in victims.read(pid, "cmdline")]

    def pids(self) -> dict[str, list[int]]:
        """Return the processes of each end."""
        laptops = {way: [each.pid] for way, each in self._programs.items()}
        return {**laptops, "workers": [*victims.host(self.node(0)), *victims.host(self.node(1))]}

    def report(self, way: str) -> str:
        """Describe a program for a failed assertion."""
        text = "\n".join(self.fleet.lines(self.job)) if way == "driver" else ""
        return f"{way}: {text or self._log(way).read_text()[-4000:]}\n{self.fleet.logs()}"

    def _submit(self) -> None:
        package = Path(run_programs.__file__).parent
        code = self._folder / "code"
        copied = code / package.relative_to(CHECKOUT)
        shutil.copytree(package, copied, ignore=shutil.ignore_patterns("__pycache__"))
        for parent in [*copied.parents][: len(copied.relative_to(code).parts) - 1]:
            (parent / "__init__.py").touch()
        file = self._folder / "job.json"
        file.write_text(json.dumps({**SPEC, "workdir": str(code)}))
        done = subprocess.run(
            [Path(sys.executable).with_name("mportal"), "submit", "-f", file],
            env=self._laptop_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        [job] = self.fleet.get()["results"]
        self.job = job["id"]

    def _laptop_environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "PYTHONPATH": str(CHECKOUT),
            "MPORTAL_URL": self.fleet.door.url,
            "MPORTAL_TOKEN": self.fleet.token,
        }

    def _log(self, way: str) -> Path:
        return self._folder / f"{way}.log"


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """Provide the three programs."""
    ways = Ways(tmp_path_factory.mktemp("ways"))
    try:
        ways.start()
        yield ways
    finally:
        ways.close()


def network_of(pid: int) -> Path:
    """Return the network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net").readlink()


def test_laptops_and_workers_reach_nothing_but_a_port(ways: Ways) -> None:
    networks = {network_of(os.getpid())}
    for pids in ways.pids().values():
        networks |= {network_of(pid) for pid in pids}
        for pid in pids:
            devices = victims.read(pid, "net/dev").decode().splitlines()[2:]
            assert [each.partition(":")[0].strip() for each in devices] == ["lo"]
    # That of the portal, of the laptops, and of the workers.
    assert len(networks) == 3


@pytest.mark.feature("S1.1")
@pytest.mark.feature("S1.2")
@pytest.mark.feature("S1.3")
@pytest.mark.parametrize("way", WAYS)
def test_every_program_passes(ways: Ways, way: str) -> None:
    ways.wait_for("begun", next(iter(DEATHS)), (way,))
    printed = ways.printed(way)
    failures = {name: printed["program", name] for name in PROGRAMS if printed["program", name]}
    assert not failures, "\n".join(failures.values())


@pytest.mark.feature("S1.1")
@pytest.mark.feature("S1.2")
@pytest.mark.parametrize("death", [name for name in DEATHS if name != "host"])
def test_programs_survive_a_death(ways: Ways, death: str) -> None:
    ways.wait_for("begun", death)
    ways.strike(death)
    ways.wait_for("survived", death)
    expected = ANSWERED if death in PARTS else "RuntimeError"
    outcomes = {way: ways.printed(way)["survived", death] for way in WAYS}
    assert outcomes == dict.fromkeys(WAYS, expected)


def test_a_lost_host_is_reported_on_every_way(ways: Ways) -> None:
    ways.wait_for("begun", "host")
    ways.strike("host")
    ways.wait_for("survived", "host", WAYS[1:])
    outcomes = {way: ways.printed(way)["survived", "host"] for way in WAYS[1:]}
    assert outcomes == {"attached": "HostLostError", "proxies": "SessionLostError"}
    # The driver ends with its attempt.
    job = ways.fleet.wait_for_end(ways.job)
    assert (job["status"], job["stop_reason"]) == ("FAILED", "WORKER_LOST")
    assert "rank 1" in job["message"]
