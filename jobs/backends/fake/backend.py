"""A backend without machines, for tests: clusters go through their lives by the clock and a plan.

Its state is a directory of files, so that several processes can use one. Nothing runs and
no process pushes: a runner's frames come out of `frames`, and of `leftovers` at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jobs.backends.base import (
    AvoidedNode,
    ClusterPhase,
    ClusterView,
    LaunchRequest,
    Leftovers,
    NodeView,
)
from jobs.backends.fake.frames import Story, frames_of
from jobs.backends.fake.keeper import FakeKeeper
from jobs.backends.fake.state import FakeCluster, FakePlan, FakeRun
from jobs.errors import BackendError, NoCapacityError, NotYetGoneError, StillLookingError

__all__ = ["FakeBackend", "FakePlan"]

DEFAULT_NODES = 16


class FakeBackend(FakeKeeper):
    """Passes the contract suite."""

    name = "fake"
    stop_patience_s = 10.0

    def set_capacity(self, nodes: int) -> None:
        """Let at most `nodes` nodes be on at once."""
        self._set("capacity", nodes)

    def finish(self, cluster_name: str, exit_code: int = 0, attempt_id: int | None = None) -> None:
        """Let the attempt, by default the newest, end now."""
        self._end(cluster_name, attempt_id, exit_code=exit_code)

    def lose(self, cluster_name: str) -> None:
        """Let the machines vanish now, without a verdict."""
        self._end(cluster_name, None, is_lost=True)

    def frames(
        self,
        cluster_name: str,
        after: Mapping[int, int] | None = None,
        *,
        attempt_id: int | None = None,
    ) -> list[bytes]:
        """Return the frames that rank 0 has written so far, without those in `after`."""
        cluster, now = self._read_now(cluster_name)
        run = _run_of(cluster_name, cluster, attempt_id)
        plan = run.plan
        stopped = run.stopped_at is not None and plan.run_s is None
        story = Story(
            num_nodes=run.num_nodes,
            up_at=run.up_at,
            ends_at=run.ends_at(),
            lines=plan.lines,
            line_every_s=plan.line_every_s,
            exit_code=plan.exit_code,
            was_stopped=stopped and run.ended_at is None,
        )
        return list(frames_of(story, now, after or {}))

    def check(self, spec: dict[str, Any]) -> list[tuple[str, str]]:
        """Accept every spec that fits; `idle.then: stop` is refused after `refuse_stop`."""
        wanted, problems = int(spec.get("num_nodes") or 1), []
        if wanted > self.capacity_nodes():
            problems.append(("num_nodes", f"At most {self.capacity_nodes()} nodes."))
        idle = (spec.get("portal") or {}).get("idle") or {}
        if idle.get("then") == "stop" and (why := self.why_no_stop("")):
            problems.append(("portal.idle.then", why))
        return problems

    def why_not_avoided(self, spec: dict[str, Any], node: AvoidedNode) -> str:
        """Return "": a launch can always be kept off a node."""
        return ""

    def avoided(self, cluster_name: str) -> list[str]:
        """Return the nodes that the cluster's last launch had to avoid."""
        return list(self._cluster(cluster_name).avoid)

    def capacity_nodes(self) -> int:
        """Return the capacity that was set; 16 by default."""
        return int(self._setting("capacity", DEFAULT_NODES))

    def capacity_gpus(self) -> None:
        """Return no limit: its nodes have whatever GPUs a job requests."""
        return

    def launch(self, request: LaunchRequest) -> None:
        """Make the cluster, or add the attempt to it; machines that are off go on again."""
        plan, name = self._plan_for(request.job_name), request.cluster_name
        with self._locked("launch", name):
            cluster, now = self._find(name), self._clock()
            if cluster is not None and cluster.run_of(request.attempt_id) is not None:
                return
            if plan.launch_error:
                raise BackendError(plan.launch_error)
            if cluster is None or cluster.is_lost(now):
                cluster = self._new(request, plan, now)
            else:
                cluster = self._with_run(name, cluster, request, plan)
            cluster = replace(cluster, avoid=tuple(node.host for node in request.avoid))
            if request.autostop_minutes is not None:
                cluster = replace(cluster, autostop_minutes=request.autostop_minutes)
            self._store(name, cluster)

    def observe(
        self,
        cluster_name: str,
        *,
        attempt_id: int | None = None,
        closely: bool = True,
    ) -> ClusterView:
        """Report the phase that the cluster has reached by the clock."""
        cluster, now = self._find(cluster_name), self._clock()
        if cluster is None:
            return ClusterView(ClusterPhase.GONE)
        phase, seen = cluster.phase(attempt_id, now), self._seen(cluster_name, cluster, now)
        if phase not in {ClusterPhase.UP, ClusterPhase.ENDED}:
            return ClusterView(phase, seen=None if phase is ClusterPhase.GONE else seen)
        alive, run = phase is ClusterPhase.UP, self._run(cluster_name, attempt_id)
        nodes = (NodeView(rank, f"192.0.2.{rank + 1}", alive) for rank in range(run.num_nodes))
        return ClusterView(phase, tuple(nodes), seen=seen)

    def stop(
        self,
        cluster_name: str,
        grace_s: float,
        *,
        attempt_id: int | None = None,
    ) -> None:
        """End the attempt after its plan's `stop_s`, at the latest after the grace."""
        with self._locked("stop", cluster_name):
            cluster = self._find(cluster_name)
            run = None if cluster is None else cluster.run_of(attempt_id)
            if run is not None and run.stopped_at is None:
                plan = replace(run.plan, stop_s=min(run.plan.stop_s, grace_s))
                stopped = replace(run, plan=plan)
                self._change_now(
                    cluster_name,
                    lambda found, now: found.with_run(replace(stopped, stopped_at=now)),
                )

    def leftovers(
        self,
        cluster_name: str,
        *,
        attempt_id: int | None = None,
    ) -> Leftovers:
        """Return all frames of an ended run: none was pushed, so none was acknowledged."""
        phase = self.observe(cluster_name, attempt_id=attempt_id).phase
        if phase is not ClusterPhase.ENDED:
            return Leftovers()
        return Leftovers(self.frames(cluster_name, attempt_id=attempt_id))

    def tear_down(self, cluster_name: str) -> None:
        """Forget the cluster, once the plan's `tear_down_s` have passed."""
        with self._locked("tear_down", cluster_name):
            cluster, now = self._find(cluster_name), self._clock()
            if cluster is None:
                return
            if cluster.termination_requested_at is None:
                cluster = replace(cluster, termination_requested_at=now)
                self._store(cluster_name, cluster)
            if now < (cluster.termination_requested_at or now) + cluster.plan.tear_down_s:
                raise NotYetGoneError(f"{cluster_name} is still being terminated.")
            self._keep_bill(cluster_name, cluster)
            self._forget(cluster_name)

    def _new(self, request: LaunchRequest, plan: FakePlan, now: float) -> FakeCluster:
        self._require_room(request.num_nodes)
        up_at = now + plan.start_s
        run = FakeRun(request.attempt_id, plan, request.num_nodes, up_at)
        return FakeCluster(request.num_nodes, launched_at=now, on_at=now, up_at=up_at, runs=(run,))

    def _with_run(
        self, name: str, cluster: FakeCluster, request: LaunchRequest, plan: FakePlan
    ) -> FakeCluster:
        now = self._clock()
        if cluster.off_at is not None and not cluster.is_off(now):
            raise StillLookingError(f"{name} is still being switched off.")
        if cluster.is_off(now):
            self._require_room(cluster.num_nodes)
            cluster = replace(
                cluster,
                on_s=cluster.seconds_on(now),
                on_at=now,
                off_at=None,
                up_at=now + plan.start_s,
            )
        run = FakeRun(request.attempt_id, plan, request.num_nodes, max(now, cluster.up_at))
        return replace(cluster, runs=(*cluster.runs, run))

    def _require_room(self, nodes: int) -> None:
        used = self._nodes_on(self._clock())
        if used + nodes > self.capacity_nodes():
            raise NoCapacityError(f"{used} nodes are taken, {nodes} are needed.")

    def _run(self, cluster_name: str, attempt_id: int | None) -> FakeRun:
        return _run_of(cluster_name, self._cluster(cluster_name), attempt_id)

    def _end(self, cluster_name: str, attempt_id: int | None, **plan: Any) -> None:
        """End a run now, with these changes of its plan."""

        def ended(cluster: FakeCluster, now: float) -> FakeCluster:
            run = _run_of(cluster_name, cluster, attempt_id)
            return cluster.with_run(replace(run, plan=replace(run.plan, **plan), ended_at=now))

        self._change_now(cluster_name, ended)


def _run_of(cluster_name: str, cluster: FakeCluster, attempt_id: int | None) -> FakeRun:
    run = cluster.run_of(attempt_id)
    if run is None:
        raise BackendError(f"There is no attempt {attempt_id} on {cluster_name}.")
    return run
