"""Rigs: the facts about each backend that the contract suite needs beside the contract itself."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from jobs.backends.base import ClusterPhase, ComputeBackend, LaunchRequest
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.backends.local.backend import LocalBackend, LocalOptions
from jobs.backends.local.isolation import jobs_get_own_user
from jobs.backends.local.processes import kill_all, processes_of_cluster
from jobs.backends.local.slots import SlotLeases
from jobs.backends.registry import LEASES_OF_ROOT
from tests.fake_ingest import FakeIngest
from tests.runner_harness import wait_until

NODES = 4
GRACE_S = 0.5
# How long anything may take where a machine is a process.
PATIENCE_S = 40.0
LINE = "hello from the job"
# "short" ends by itself, "long" when it is stopped, "stubborn" not even then.
Behaviour = Literal["short", "long", "stubborn"]
PROGRAMS: dict[str, str] = {
    "short": f"echo {LINE}",
    "long": f"echo {LINE}; exec sleep 600",
    "stubborn": f"trap '' TERM; echo {LINE}; while true; do sleep 0.05; done",
}
_numbers = itertools.count(1)


def make_request(spec: dict[str, Any], nodes: int = 1, portal_url: str = "") -> LaunchRequest:
    """Return a request with its own name."""
    number = next(_numbers)
    return LaunchRequest(
        cluster_name=f"mptest{os.getpid()}-{time.time_ns() % 10**9}-{number}",
        project_slug="rl",
        job_id=number,
        job_name="hello",
        attempt_id=number,
        attempt_number=1,
        spec={"num_nodes": nodes, **spec},
        num_nodes=nodes,
        portal_url=portal_url,
        token="secret-token",
        metrics_s=0.0,  # samples come by the clock
    )


class Rig(Protocol):
    """A backend with capacity for NODES nodes, and ways to inspect its processes and files."""

    # How long a test waits for any one thing.
    patience_s: float

    @property
    def backend(self) -> ComputeBackend:
        """The backend."""

    def request(self, behaviour: Behaviour, nodes: int = 1) -> LaunchRequest:
        """Return a request for a job that prints LINE and behaves like that."""

    def another_process(self) -> ComputeBackend:
        """Return the same backend as a newly started process sees it."""

    def incarnations(self, name: str) -> list[str]:
        """List what was started for the cluster; each node's start has a name of its own."""

    def started_once(self, name: str) -> bool:
        """Whether each node was started exactly once."""

    def wait_for_line(self, name: str) -> None:
        """Wait until the job is well under way."""

    def cut_off(self) -> None:
        """Let no frame reach the portal from now on."""

    def kill_everything(self, name: str) -> None:
        """kill -9 to the cluster's processes, as a machine's owner might."""

    def remains(self, name: str) -> list[str]:
        """List all traces of the cluster: processes, files, leases, addresses."""


class FakeRig:
    """The fake backend, which runs a plan for each kind of job."""

    patience_s = PATIENCE_S

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.backend = FakeBackend(folder)
        self.backend.set_capacity(NODES)

    def request(self, behaviour: Behaviour, nodes: int = 1) -> LaunchRequest:
        run_s = 0.05 if behaviour == "short" else None
        stop_s = 600.0 if behaviour == "stubborn" else 0.0
        self.backend.set_plan(FakePlan(run_s=run_s, stop_s=stop_s, lines=(LINE,)))
        return make_request({}, nodes)

    def another_process(self) -> ComputeBackend:
        return FakeBackend(self._folder)

    def incarnations(self, name: str) -> list[str]:
        return [each.key for each in self.backend.existing() if each.name == name]

    def started_once(self, name: str) -> bool:
        return len(self.incarnations(name)) == 1

    def wait_for_line(self, name: str) -> None:
        assert self.backend.frames(name)

    def cut_off(self) -> None:
        """Do nothing: the fake backend reaches no portal anyway."""

    def kill_everything(self, name: str) -> None:
        self.backend.finish(name, exit_code=137)

    def remains(self, name: str) -> list[str]:
        # What it has cost is remembered, and is all.
        found = self._folder.rglob(f"{name}*")
        files = [str(path) for path in found if path.parent.name != "bills"]
        return [*self.incarnations(name), *files]


class LocalRig:
    """The local backend over real runners, which push to a portal that only takes frames."""

    patience_s = PATIENCE_S

    def __init__(self, home: Path) -> None:
        self.folder = folder = home / "local"
        self.portal_file = home / "portal.json"
        self.ingest = FakeIngest()
        self.portal_url = self.ingest.url
        self.uploads: dict[str, Path] = {}
        self._leases = LEASES_OF_ROOT if jobs_get_own_user() else folder / "slots"
        self._launched: list[str] = []
        self._is_cut_off = False
        self.backend = self.another_process()

    def request(self, behaviour: Behaviour, nodes: int = 1) -> LaunchRequest:
        return self.request_program(PROGRAMS[behaviour], nodes)

    def request_program(self, run: str, nodes: int = 1, **spec: Any) -> LaunchRequest:
        """Return a request for a plain job that runs `run` on every node."""
        return self.request_spec({"run": run, **spec}, nodes)

    def request_spec(self, spec: dict[str, Any], nodes: int) -> LaunchRequest:
        """Return a request for a job with this spec."""
        request = make_request(spec, nodes, self.portal_url)
        self._launched.append(request.cluster_name)
        return request

    def output_of(self, run: str, nodes: int = 1, **spec: Any) -> list[str]:
        """Run a job to its end and return its output."""
        request = self.request_program(run, nodes, **spec)
        self.backend.launch(request)
        wait_for_phase(self.backend, request.cluster_name, ClusterPhase.ENDED)
        return self.ingest.texts()

    def another_process(self) -> LocalBackend:
        options = LocalOptions(self.folder, self._leases, NODES, self.portal_file, grace_s=GRACE_S)
        return LocalBackend(options, self._open_upload)

    @contextmanager
    def _open_upload(self, reference: str) -> Iterator[Path]:
        yield self.uploads[reference]

    def path(self, name: str) -> Path:
        """Return the cluster's directory."""
        return self.folder / name

    def incarnations(self, name: str) -> list[str]:
        return sorted(path.read_text() for path in self.path(name).glob("started-*"))

    def started_once(self, name: str) -> bool:
        nodes = self.backend.observe(name).nodes
        return all(node.alive for node in nodes) and len(self.incarnations(name)) == len(nodes)

    def wait_for_line(self, name: str) -> None:
        wait_until(lambda: LINE in self.ingest.texts() or self._is_in_journal(name))

    def _is_in_journal(self, name: str) -> bool:
        frames = self.backend.leftovers(name).frames if self._is_cut_off else ()
        return any(LINE.encode() in frame for frame in frames)

    def cut_off(self) -> None:
        self._is_cut_off = True
        self.ingest.stop()

    def uid(self, name: str) -> int | None:
        """Return the user id that the cluster has leased; None where jobs run as this user."""
        slot = SlotLeases(self._leases, "").find(self.path(name))
        return slot.uid if slot is not None and jobs_get_own_user() else None

    def pids(self, name: str) -> list[int]:
        """List the cluster's living processes."""
        return [process.pid for process in processes_of_cluster(name, self.uid(name))]

    def kill_everything(self, name: str) -> None:
        for pid in self.pids(name):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.pids(name))

    def remains(self, name: str) -> list[str]:
        # That a name was used is remembered, and is all.
        memory = self.folder / "ended" / name
        files = [str(path) for path in self.folder.rglob(f"{name}*") if path != memory]
        leases = [
            str(path) for path in self._leases.iterdir() if name in path.read_text(errors="replace")
        ]
        return [*files, *leases, *map(str, self.pids(name))]

    def close(self) -> None:
        """Take down whatever a test has left, however it went."""
        for name in self._launched:
            kill_all(name, self.uid(name))
            self.backend.tear_down(name)
        self.ingest.stop()


def wait_for_phase(backend: ComputeBackend, name: str, phase: ClusterPhase) -> None:
    """Wait until the cluster is in `phase`; AssertionError with the current phase otherwise."""
    try:
        wait_until(lambda: backend.observe(name).phase is phase)
    except AssertionError as error:
        raise AssertionError(f"never {phase}: {backend.observe(name)}") from error
