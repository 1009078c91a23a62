"""A backend without machines, for tests: clusters go through their lives by the clock and a plan.

Its state is a directory of JSON files, so that several processes can use one. Nothing runs and
nobody pushes: what a runner would have sent comes out of `frames`, and of `leftovers` at the end.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from jobs.backends.base import ClusterPhase, ClusterView, LaunchRequest, Leftovers, NodeView
from jobs.backends.fake_frames import Story, frames_of
from jobs.errors import BackendError, NoCapacityError, NotYetGoneError

DEFAULT_NODES = 16


@dataclass(frozen=True, slots=True)
class FakePlan:
    """What happens to a job's clusters. Times are seconds; None: it does not end by itself."""

    start_s: float = 0.0
    run_s: float | None = None
    stop_s: float = 0.0
    tear_down_s: float = 0.0
    exit_code: int = 0
    lines: tuple[str, ...] = ()
    line_every_s: float = 0.0  # the pause between two lines
    is_lost: bool = False  # the machines vanish with their disks, without a last word
    launch_error: str = ""  # BackendError on launch


@dataclass(frozen=True, slots=True)
class FakeCluster:
    """One cluster's file."""

    num_nodes: int
    plan: FakePlan
    launched_at: float
    stopped_at: float | None = None
    ended_at: float | None = None  # ended from outside: `finish`, `lose`
    gone_asked_at: float | None = None

    def ends_at(self) -> float | None:
        """When its runners are dead; None while nothing ends them."""
        plan, up_at = self.plan, self.launched_at + self.plan.start_s
        candidates = (
            None if plan.run_s is None else up_at + plan.run_s,
            None if self.stopped_at is None else self.stopped_at + plan.stop_s,
            self.ended_at,
        )
        return min((moment for moment in candidates if moment is not None), default=None)

    def phase(self, now: float) -> ClusterPhase:
        """Where it stands."""
        ends_at = self.ends_at()
        if ends_at is not None and now >= ends_at:
            return ClusterPhase.GONE if self.plan.is_lost else ClusterPhase.ENDED
        is_up = now >= self.launched_at + self.plan.start_s
        return ClusterPhase.UP if is_up else ClusterPhase.STARTING


class FakeBackend:
    """Passes the contract suite. Plans belong to job names; `calls` tells what was asked."""

    name = "fake"
    carrier: Literal["push", "pull", "either"]

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        self.carrier = "pull" if (directory / "pulled").exists() else "push"
        (directory / "clusters").mkdir(parents=True, exist_ok=True)
        (directory / "plans").mkdir(exist_ok=True)

    def plan(self, plan: FakePlan, job_name: str = "") -> None:
        """From now on clusters of jobs called `job_name` (or of all others) live by `plan`."""
        self._write(self._directory / "plans" / f"{job_name or '*'}.json", asdict(plan))

    def set_capacity(self, nodes: int) -> None:
        """Let at most `nodes` nodes exist at once."""
        self._write(self._directory / "capacity.json", {"nodes": nodes})

    def be_pulled(self) -> None:
        """From now on, in every process: let the portal fetch the frames."""
        (self._directory / "pulled").touch()
        self.carrier = "pull"

    def finish(self, cluster_name: str, exit_code: int = 0) -> None:
        """Let the job end now."""
        cluster = self._cluster(cluster_name)
        plan = replace(cluster.plan, exit_code=exit_code)
        self._store(cluster_name, replace(cluster, plan=plan, ended_at=self._clock()))

    def lose(self, cluster_name: str) -> None:
        """Let the machines vanish now, without a last word."""
        cluster = self._cluster(cluster_name)
        plan = replace(cluster.plan, is_lost=True)
        self._store(cluster_name, replace(cluster, plan=plan, ended_at=self._clock()))

    def frames(
        self,
        cluster_name: str,
        after: Mapping[int, int] | None = None,
        *,
        attempt_id: int | None = None,
    ) -> list[bytes]:
        """What the runner of rank 0 has written so far, without what is in `after`."""
        cluster = self._cluster(cluster_name)
        plan, ends_at = cluster.plan, cluster.ends_at()
        stopped = cluster.stopped_at is not None and plan.run_s is None
        story = Story(
            num_nodes=cluster.num_nodes,
            up_at=cluster.launched_at + plan.start_s,
            ends_at=ends_at,
            lines=plan.lines,
            line_every_s=plan.line_every_s,
            exit_code=plan.exit_code,
            was_stopped=stopped and cluster.ended_at is None,
        )
        return list(frames_of(story, self._clock(), after or {}))

    def calls(self) -> list[tuple[str, str]]:
        """Every (verb, cluster name) asked for so far, by anybody; looks are not counted."""
        try:
            text = (self._directory / "calls.ndjson").read_text()
        except FileNotFoundError:
            return []
        return [(verb, name) for verb, name in map(json.loads, text.splitlines())]

    def check(self, spec: dict[str, Any]) -> list[tuple[str, str]]:
        """Takes every spec that fits."""
        wanted = int(spec.get("num_nodes") or 1)
        if wanted > self.capacity_nodes():
            return [("num_nodes", f"At most {self.capacity_nodes()} nodes.")]
        return []

    def capacity_nodes(self) -> int:
        """As set; 16 by default."""
        content = self._read(self._directory / "capacity.json") or {"nodes": DEFAULT_NODES}
        return int(content["nodes"])

    def launch(self, request: LaunchRequest) -> None:
        """Make the cluster's file, if there is room for its nodes."""
        plan = self._plan_for(request.job_name)
        with self._locked("launch", request.cluster_name):
            if self._path(request.cluster_name).exists():
                return
            if plan.launch_error:
                raise BackendError(plan.launch_error)
            used = sum(self._cluster(path.stem).num_nodes for path in self._clusters())
            if used + request.num_nodes > self.capacity_nodes():
                raise NoCapacityError(f"{used} nodes are taken, {request.num_nodes} are needed.")
            self._store(request.cluster_name, FakeCluster(request.num_nodes, plan, self._clock()))

    def observe(
        self,
        cluster_name: str,
        *,
        attempt_id: int | None = None,
        closely: bool = True,
    ) -> ClusterView:
        """Where the clock has brought the cluster."""
        if not self._path(cluster_name).exists():
            return ClusterView(ClusterPhase.GONE)
        cluster = self._cluster(cluster_name)
        phase = cluster.phase(self._clock())
        if phase in {ClusterPhase.STARTING, ClusterPhase.GONE}:
            return ClusterView(phase)
        alive = phase is ClusterPhase.UP
        nodes = (NodeView(rank, f"192.0.2.{rank + 1}", alive) for rank in range(cluster.num_nodes))
        return ClusterView(phase, tuple(nodes))

    def stop(
        self,
        cluster_name: str,
        grace_s: float,
        *,
        attempt_id: int | None = None,
    ) -> None:
        """End the job after the plan's `stop_s`, at the latest after the grace."""
        with self._locked("stop", cluster_name):
            if not self._path(cluster_name).exists():
                return
            cluster = self._cluster(cluster_name)
            if cluster.stopped_at is None:
                plan = replace(cluster.plan, stop_s=min(cluster.plan.stop_s, grace_s))
                stopped = replace(cluster, plan=plan, stopped_at=self._clock())
                self._store(cluster_name, stopped)

    def leftovers(
        self,
        cluster_name: str,
        *,
        attempt_id: int | None = None,
    ) -> Leftovers:
        """Everything, once it has ended: nobody has acknowledged anything that nobody pushed."""
        if self.observe(cluster_name).phase is not ClusterPhase.ENDED:
            return Leftovers()
        return Leftovers(self.frames(cluster_name))

    def tear_down(self, cluster_name: str) -> None:
        """Delete the cluster's file, once the plan's `tear_down_s` have passed."""
        with self._locked("tear_down", cluster_name):
            path = self._path(cluster_name)
            if not path.exists():
                return
            cluster, now = self._cluster(cluster_name), self._clock()
            if cluster.gone_asked_at is None:
                cluster = replace(cluster, gone_asked_at=now)
                self._store(cluster_name, cluster)
            if now < (cluster.gone_asked_at or now) + cluster.plan.tear_down_s:
                raise NotYetGoneError(f"{cluster_name} is still going down.")
            path.unlink()

    def _plan_for(self, job_name: str) -> FakePlan:
        plans = self._directory / "plans"
        content = self._read(plans / f"{job_name}.json") or self._read(plans / "*.json")
        return _plan(content) if content else FakePlan()

    def _clusters(self) -> list[Path]:
        return list((self._directory / "clusters").glob("*.json"))

    def _path(self, cluster_name: str) -> Path:
        return self._directory / "clusters" / f"{cluster_name}.json"

    def _cluster(self, cluster_name: str) -> FakeCluster:
        content = self._read(self._path(cluster_name))
        if content is None:
            raise BackendError(f"There is no cluster {cluster_name}.")
        return FakeCluster(**{**content, "plan": _plan(content["plan"])})

    def _store(self, cluster_name: str, cluster: FakeCluster) -> None:
        self._write(self._path(cluster_name), asdict(cluster))

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        return content

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(content))
        draft.replace(path)

    @contextmanager
    def _locked(self, verb: str, cluster_name: str) -> Iterator[None]:
        with (self._directory / "calls.ndjson").open("a") as calls:
            fcntl.flock(calls, fcntl.LOCK_EX)
            calls.write(json.dumps([verb, cluster_name]) + "\n")
            calls.flush()
            yield


def _plan(content: dict[str, Any]) -> FakePlan:
    return FakePlan(**{**content, "lines": tuple(content["lines"])})
