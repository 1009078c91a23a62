"""What a place where jobs run promises. Every backend passes the same contract tests.

All calls are synchronous, return within seconds and may be repeated: a crash between "asked" and
"stored" is healed by asking again with the same cluster name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol, TypeGuard


class ClusterPhase(Enum):
    """What a backend sees of a cluster and of the attempt on it."""

    STARTING = "starting"  # asked for, not all nodes are there
    UP = "up"  # nodes are there and the attempt's runners are alive
    ENDED = "ended"  # nodes may be there, but no runner of the attempt is alive any more
    GONE = "gone"  # nothing of this name exists


@dataclass(frozen=True, slots=True)
class UploadSource:
    """A checked archive on the portal's disk or in its blob store, and where nodes unpack it."""

    reference: str  # "upload:<sha256>"
    target: str  # "workdir", or a path of file_mounts


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
    uploads: tuple[UploadSource, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node as the backend sees it."""

    rank: int
    address: str
    alive: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What is there now. `backend_status` keeps the backend's own word."""

    phase: ClusterPhase
    nodes: tuple[NodeView, ...] = ()
    backend_status: str = ""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Frames a runner had written but nobody acknowledged, found after it died.

    `frames` are the journal's lines, in order, as bytes of NDJSON (see `monarch_client.runner`).
    """

    frames: Iterable[bytes] = field(default_factory=tuple)


class ComputeBackend(Protocol):
    """Where jobs run."""

    name: str
    carrier: Literal["push", "pull"]

    def check(self, spec: dict[str, Any]) -> list[tuple[str, str]]:
        """What this backend cannot do of `spec`, as (path, sentence); empty when it can all."""

    def capacity_nodes(self) -> int | None:
        """How many nodes fit at once, over all jobs; None when only quotas limit it."""

    def launch(self, request: LaunchRequest) -> None:
        """Ask for the nodes and start the attempt's runner on each.

        Safe to repeat: a cluster of this name that exists is adopted, never doubled. Returns as
        soon as the request is on its way. NoCapacityError: no room now. BackendError: else.
        """

    def observe(self, cluster_name: str) -> ClusterView:
        """What is there now. Never raises for a name that does not exist: that is GONE."""

    def stop(self, cluster_name: str, grace_s: float) -> None:
        """Ask the attempt's runners to end: SIGTERM to users' code, SIGKILL after `grace_s`.

        Returns at once. Silent when nothing runs.
        """

    def leftovers(self, cluster_name: str) -> Leftovers:
        """Frames left on the nodes; call only when no runner is alive. Empty if none survive."""

    def tear_down(self, cluster_name: str) -> None:
        """Give everything back: processes, directories, addresses, leases.

        Returns when nothing is left. NotYetGoneError: asked for, ask again. Silent if gone.
        """


class PullingBackend(ComputeBackend, Protocol):
    """A backend whose nodes cannot reach the portal: its frames are fetched (`jobs.follower`)."""

    def frames(self, cluster_name: str, after: Mapping[int, int]) -> Iterable[bytes]:
        """What the attempt's runner has written and the portal has not stored, as NDJSON, in order.

        `after` is the highest stored number of each rank; frames up to it may be left out. Only
        whole frames. Ends when it has given what is there now, yields or ends within 20 seconds,
        and is asked again for as long as the attempt is open. BackendError: not now.
        """


def is_pulling(backend: ComputeBackend) -> TypeGuard[PullingBackend]:
    """Whether the portal has to fetch this backend's frames."""
    return backend.carrier == "pull"
