"""The local backend: every node is a real process on an address of its own on this machine.

This file defines the order of the steps; the modules beside it carry them out.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jobs.backends.attempt_file import authority_for, ports_of
from jobs.backends.base import (
    AvoidedNode,
    ClusterPhase,
    ClusterView,
    LaunchRequest,
    Leftovers,
    NodeView,
)
from jobs.backends.ended_names import EndedNames
from jobs.backends.local.claims import Claim, Claims
from jobs.backends.local.folders import ClusterFolder, Record, remove_strays
from jobs.backends.local.gpus import choose_gpus, gpus_of_machine, nvml_directories
from jobs.backends.local.isolation import jobs_get_own_user, start_nodes
from jobs.backends.local.journal import unacknowledged_frames
from jobs.backends.local.limits import find_obstacles
from jobs.backends.local.nodes import (
    Layout,
    UploadOpener,
    lay_out_node,
    link_tmp,
    node_start,
    unlink_tmp,
)
from jobs.backends.local.ports import choose_ports, needed_ports
from jobs.backends.local.processes import kill_all
from jobs.backends.local.python import PortalPython
from jobs.backends.local.runner import installed_runner
from jobs.backends.local.slots import Slot, SlotLeases
from jobs.backends.private_files import make_directory
from jobs.errors import BackendError, NoCapacityError, NotYetGoneError
from monarch_client import crash_points

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """An installation's settings for its local backend."""

    directory: Path  # of the clusters, one directory each
    leases: Path  # shared by all installations that could take each other's user ids
    nodes: int
    portal_file: Path | None
    grace_s: float = 10.0


class LocalBackend:
    """A backend for this machine. Its state is in directories, leases and processes alone."""

    name = "local"
    carrier: Literal["push", "pull", "either"] = "push"
    stop_patience_s = 10.0

    def __init__(self, options: LocalOptions, open_upload: UploadOpener) -> None:
        self._options = options
        self._open_upload = open_upload
        self._leases = SlotLeases(options.leases, start=str(options.directory))
        self._claims = Claims(options.directory)
        self._ended = EndedNames(options.directory / "ended")
        self._python = PortalPython.current()

    def check(self, spec: dict[str, Any]) -> list[tuple[str, str]]:
        """List what this machine cannot do of `spec`, as (path, sentence)."""
        return find_obstacles(spec, self._options.nodes)

    def why_not_avoided(self, spec: dict[str, Any], node: AvoidedNode) -> str:
        """Explain that there is no other machine."""
        return "On the local backend all nodes are this one machine."

    def capacity_nodes(self) -> int:
        """Return how many nodes this machine may run at once."""
        return self._options.nodes

    def capacity_gpus(self) -> int | None:
        """Return how many GPUs this machine has; None without any: such jobs are refused."""
        return len(gpus_of_machine()) or None

    def launch(self, request: LaunchRequest) -> None:
        """Lay out the nodes and start a runner on each. A repeated call starts what is missing."""
        folder = self._folder(request.cluster_name)
        try:
            # Jobs may pass through it, but not list it.
            make_directory(self._options.directory, 0o711)
            with folder.locked() as lock:
                self._refuse_ended(folder)
                self._launch(folder, request, lock)
        except OSError as error:
            # Omit the path, which only the portal's log may show.
            why = error.strerror or type(error).__name__
            raise BackendError(f"This machine could not take the job: {why}.") from error

    def _refuse_ended(self, folder: ClusterFolder) -> None:
        if folder.name in self._ended:
            # With a record in it the tear-down is still on its way here, and takes it along.
            if folder.record() is None:
                folder.remove()
            raise BackendError(f"{folder.name} was torn down and does not start again.")

    def _launch(self, folder: ClusterFolder, request: LaunchRequest, lock: int) -> None:
        layout = self._layout(folder, request, self._admitted(folder, request))
        ranks = range(layout.record.num_nodes)
        missing = [rank for rank in ranks if not folder.has_started(rank)]
        for rank in missing:
            lay_out_node(layout, rank, self._python, self._open_upload)
            link_tmp(layout, rank)
        if missing:
            crash_points.reach("launch.laid_out")
            starts = [node_start(layout, rank, self._python) for rank in missing]
            start_nodes(starts, layout.uid, self._needed(layout), lock)

    def observe(
        self,
        cluster_name: str,
        *,
        attempt_id: int | None = None,
        closely: bool = True,
    ) -> ClusterView:
        """Report the present state. A launch that was cut off yields GONE and is repeated."""
        folder = self._folder(cluster_name)
        record, slot = folder.record(), self._leases.find(folder.path)
        ranks = range(record.num_nodes if record else 0)
        started = [folder.has_started(rank) for rank in ranks]
        is_complete = bool(started) and all(started)
        if folder.is_locked and not is_complete:
            return ClusterView(ClusterPhase.STARTING)
        if slot is None or not is_complete:
            return ClusterView(ClusterPhase.GONE)
        nodes = tuple(_node_view(folder, slot, rank) for rank in ranks)
        is_up = any(node.alive for node in nodes)
        return ClusterView(ClusterPhase.UP if is_up else ClusterPhase.ENDED, nodes)

    def stop(
        self,
        cluster_name: str,
        grace_s: float,
        *,
        attempt_id: int | None = None,
    ) -> None:
        """Ask rank 0's runner to end the attempt, or all others if that one is dead.

        The grace is the one the runners were started with; none at all kills at once.
        """
        folder = self._folder(cluster_name)
        record = folder.record()
        if record is None:
            return
        if grace_s <= 0:
            kill_all(cluster_name, self._uid(folder))
            return
        runners = [folder.runner_process(rank) for rank in range(record.num_nodes)]
        alive = [runner for runner in runners if runner is not None]
        for runner in alive[:1] if runners[0] is not None else alive:
            runner.send(signal.SIGTERM)

    def leftovers(
        self,
        cluster_name: str,
        *,
        attempt_id: int | None = None,
    ) -> Leftovers:
        """Return the frames left in the journal on rank 0."""
        folder = self._folder(cluster_name)
        record, state = folder.record(), folder.node(0).state
        if record is None:
            return Leftovers()
        return Leftovers(unacknowledged_frames(Path(record.runner), state, self._uid(folder)))

    def tear_down(self, cluster_name: str) -> None:
        """Kill what is alive, delete the directory, give back network and user id, in this order.

        The name is never launched again. BackendUnavailableError: another process is at it.
        NotYetGoneError: a process hangs in the kernel and won't die yet.
        """
        folder = self._folder(cluster_name)
        # First of all: a launch that comes later finds it, one that came before is waited for.
        self._ended.add(cluster_name)
        if folder.path.exists():
            with folder.locked():
                uid, record = self._uid(folder), folder.record()
                if not kill_all(cluster_name, uid):
                    raise NotYetGoneError(f"Some processes of {cluster_name} do not die yet.")
                for rank in range(record.num_nodes if record else 0):
                    unlink_tmp(folder, rank)
                if uid is not None:
                    remove_strays(uid)
                folder.remove()
        self._leases.release(folder.path)

    def _folder(self, cluster_name: str) -> ClusterFolder:
        if not cluster_name or "/" in cluster_name or cluster_name.startswith("."):
            raise BackendError(f"{cluster_name!r} is not the name of a cluster.")
        return ClusterFolder(self._options.directory / cluster_name)

    def _uid(self, folder: ClusterFolder) -> int | None:
        slot = self._leases.find(folder.path)
        return slot.uid if slot is not None and jobs_get_own_user() else None

    def _needed(self, layout: Layout) -> list[Path]:
        """List the directories that the runners must see."""
        portal_file = self._options.portal_file
        return [
            *self._python.prefixes,
            Path(layout.record.runner),
            layout.folder.path,
            *([portal_file.parent] if portal_file else []),
            *crash_points.directories(),
            *nvml_directories(),
        ]

    def _admitted(self, folder: ClusterFolder, request: LaunchRequest) -> Record:
        """Return the cluster's record; make it if its nodes fit, else remove the folder again."""
        record = folder.record()
        if record is not None:
            return record
        try:
            claim = self._claims.make(folder, lambda others: self._chosen(request, others))
        except NoCapacityError:
            folder.remove()
            raise
        authority = authority_for(request)
        record = Record(
            num_nodes=claim.num_nodes,
            runner=str(installed_runner(self._options.directory / "runners")),
            ca_cert=authority.certificate,
            ca_key=authority.key,
            gpus=claim.gpus,
            ports=choose_ports(request.spec, claim.num_nodes),
        )
        folder.write_record(record)
        return record

    def _chosen(self, request: LaunchRequest, others: Sequence[Claim]) -> Claim:
        """Choose unclaimed nodes and GPUs for the job. NoCapacityError: too few."""
        used = sum(other.num_nodes for other in others)
        if used + request.num_nodes > self._options.nodes:
            raise NoCapacityError(
                f"This machine runs at most {self._options.nodes} nodes at once; {used} are taken "
                f"and this job needs {request.num_nodes}."
            )
        taken = {gpu for other in others for gpus in other.gpus for gpu in gpus}
        gpus = choose_gpus({**request.spec, "num_nodes": request.num_nodes}, taken)
        return Claim(request.cluster_name, request.num_nodes, gpus)

    def _layout(self, folder: ClusterFolder, request: LaunchRequest, record: Record) -> Layout:
        own_user = jobs_get_own_user()
        ports = record.ports or ports_of(request.spec)
        needed = needed_ports(request.spec, record.num_nodes, ports)
        slot = self._leases.take(folder.path, needed, own_uid=own_user)
        return Layout(
            folder=folder,
            request=request,
            record=record,
            slot=slot,
            uid=slot.uid if own_user else None,
            portal_file=self._options.portal_file,
            grace_s=self._options.grace_s,
        )


def _node_view(folder: ClusterFolder, slot: Slot, rank: int) -> NodeView:
    alive = folder.is_alive(rank)
    return NodeView(rank, slot.address(rank), alive, "" if alive else folder.output(rank))
