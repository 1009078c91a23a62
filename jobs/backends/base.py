"""The contract of a backend. Every backend passes the same contract tests.

All calls are synchronous, return within seconds and may be repeated: a crash between the request
and its record is repaired by the same request with the same cluster name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Protocol, TypeGuard

from jobs.errors import BackendError


class ClusterPhase(Enum):
    """A cluster's phase, with the attempt on it, as its backend observes it."""

    STARTING = "starting"  # requested, not all nodes are there
    UP = "up"  # nodes are there and the attempt's runners are alive
    ENDED = "ended"  # nodes may be there, but no runner of the attempt is alive any more
    FAILED = "failed"  # the launch came to nothing; something of it may remain
    STOPPED = "stopped"  # the nodes are switched off and can be switched on again
    GONE = "gone"  # nothing of this name exists, or the attempt was never started on its nodes


@dataclass(frozen=True, slots=True)
class UploadSource:
    """A checked archive on the portal's disk or in its blob store, and where nodes unpack it."""

    reference: str  # "upload:<sha256>"
    target: str  # "workdir", or a path of file_mounts


@dataclass(frozen=True, slots=True)
class AvoidedNode:
    """A node on which an earlier attempt met a fault: its own name, and where it is."""

    host: str
    infra: str


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """All that a backend needs to bring up one attempt."""

    cluster_name: str
    project_slug: str
    job_id: int
    job_name: str
    attempt_id: int
    attempt_number: int
    spec: dict[str, Any]  # JobSpec.to_dict()
    num_nodes: int
    portal_url: str
    token: str  # the attempt's; derived, so that a repeated launch carries the same one
    driver_token: str = ""  # for its programs, to submit child jobs with; likewise derived
    # Of its certificate authority; that of its parent's attempt if it serves the parent's driver.
    authority_seed: bytes = field(default=b"", repr=False)
    uploads: tuple[UploadSource, ...] = ()
    # In clear; never stored, never shown.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    metrics_s: float = 10.0  # how often nodes report processor, memory and GPUs; 0: never
    autostop_minutes: int | None = None  # the backend's own, as a backstop; None: none
    avoid: tuple[AvoidedNode, ...] = ()  # nodes to exclude, where the backend can exclude any


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node as the backend sees it."""

    rank: int
    address: str
    alive: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SeenCluster:
    """A backend's report about machines that it holds, whether the portal requested them or not."""

    name: str
    status: str = ""  # the backend's own term
    key: str = ""  # differs between two incarnations of one name
    infra: str = ""
    resources: str = ""
    num_nodes: int = 0
    launched_at: datetime | None = None
    usd_per_hour: Decimal | None = None  # all nodes together
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """A cluster's cost until now by its backend's own report, in US$."""

    usd: Decimal
    duration_s: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way in which a job could be given its machines."""

    infra: str
    instance_type: str
    cpus: str
    memory: str
    accelerators: str
    use_spot: bool
    usd_per_hour: Decimal  # all nodes together
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch plan; nothing is started. `reasons`: why there are not more candidates."""

    candidates: tuple[Candidate, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudState:
    """A cloud that could be used, and why not where it can't."""

    name: str
    is_enabled: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GpuState:
    """GPUs of one type at one place: `free` of `total`."""

    infra: str
    node: str
    gpu: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster's present state. `backend_status` keeps the backend's own term."""

    phase: ClusterPhase
    nodes: tuple[NodeView, ...] = ()
    backend_status: str = ""
    failure: BackendError | None = None  # why, where the phase is FAILED
    seen: SeenCluster | None = None  # where the backend reports more


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Frames that a runner wrote and the portal did not acknowledge, found after the runner died.

    `frames` are the journal's lines, in order, as bytes of NDJSON (see `monarch_client.runner`).
    """

    frames: Iterable[bytes] = field(default_factory=tuple)


class ComputeBackend(Protocol):
    """A system that provides machines for attempts.

    `attempt_id` selects an attempt on the cluster; None: the only one that there was.
    """

    name: str
    # "either": decided for each attempt, by whether its nodes reach the portal.
    carrier: Literal["push", "pull", "either"]
    # How long, beyond the grace, stopped runners may take until their verdict has arrived.
    stop_patience_s: float

    def check(self, spec: dict[str, Any]) -> list[tuple[str, str]]:
        """List what this backend cannot do of `spec`, as (path, sentence)."""

    def why_not_avoided(self, spec: dict[str, Any], node: AvoidedNode) -> str:
        """Explain why a launch of `spec` can't be kept off `node`; "" if it can."""

    def capacity_nodes(self) -> int | None:
        """Return how many nodes fit at once, over all jobs; None when only quotas limit it."""

    def capacity_gpus(self) -> int | None:
        """Return how many GPUs its machines have together; None when it does not limit them."""

    def launch(self, request: LaunchRequest) -> None:
        """Request the nodes and start the attempt's runner on each.

        Safe to repeat: a cluster of this name that exists is adopted, never doubled; an attempt
        whose runners were started is not started again. Nodes that are there take one attempt
        after another; a keeper switches stopped ones on again first. Returns as soon as the
        request is on its way. NoCapacityError: no room now. BackendError: else.
        """

    def observe(
        self, cluster_name: str, *, attempt_id: int | None = None, closely: bool = True
    ) -> ClusterView:
        """Report the cluster's present state. A name that does not exist yields GONE, no error.

        Not `closely`: without a request to the nodes, where that takes long; runners that
        were started then count as alive. StillLookingError: repeat the call shortly.
        """

    def stop(self, cluster_name: str, grace_s: float, *, attempt_id: int | None = None) -> None:
        """Ask the attempt's runners to end: SIGTERM to users' code, SIGKILL after `grace_s`.

        Returns at once. Silent when nothing runs.
        """

    def leftovers(self, cluster_name: str, *, attempt_id: int | None = None) -> Leftovers:
        """Return the frames left on the nodes; call only when no runner is alive. May be empty."""

    def tear_down(self, cluster_name: str) -> None:
        """Give everything back: processes, directories, addresses, leases.

        Returns when nothing is left. NotYetGoneError: requested, call again. Repeatable.
        """


class PullingBackend(ComputeBackend, Protocol):
    """A backend some of whose nodes cannot reach the portal: it can fetch their frames."""

    def frames(
        self, cluster_name: str, after: Mapping[int, int], *, attempt_id: int | None = None
    ) -> Iterable[bytes]:
        """Yield the frames that the portal has not stored yet, as NDJSON, in order.

        `after` is the highest stored number of each rank; frames up to it may be left out. Only
        whole frames; an empty one means that the stream is open and none came for a while. Yields
        or ends within 20 seconds, and is called again for as long as the attempt is open.
        BackendError: not now.
        """


class ClusterKeeper(ComputeBackend, Protocol):
    """A backend whose machines can outlive a job, cost money and be seen by others."""

    def why_no_stop(self, cluster_name: str) -> str:
        """Explain why these machines can't be stopped with their disks kept; "" if they can."""

    def stop_machines(self, cluster_name: str) -> None:
        """Switch the nodes off and keep their disks. NotYetGoneError: requested, call again."""

    def autostop(self, cluster_name: str, minutes: int, *, down: bool) -> None:
        """Have the backend itself stop (or take down) nodes idle for `minutes`: a backstop.

        Silent where it can't, and for a name that does not exist.
        """

    def existing(self) -> list[SeenCluster]:
        """List all clusters that the backend holds, of this portal and of others."""

    def bill(self, cluster_name: str, since: datetime) -> Bill | None:
        """Report the cost of a cluster made after `since`; None: the backend does not know it."""

    def plan(self, spec: dict[str, Any]) -> Plan:
        """Return where the job could run and for how much. Starts nothing."""

    def clouds(self) -> list[CloudState]:
        """List every cloud that the backend knows, enabled or not."""

    def gpus(self) -> list[GpuState]:
        """List GPUs, where the backend can count them."""


def is_pulling(backend: ComputeBackend) -> TypeGuard[PullingBackend]:
    """Whether the portal may have to fetch this backend's frames."""
    return backend.carrier != "push"


def is_keeping(backend: ComputeBackend) -> TypeGuard[ClusterKeeper]:
    """Whether its machines can outlive a job, and are paid for."""
    return hasattr(backend, "existing")
