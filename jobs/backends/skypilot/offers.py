"""SkyPilot's offers before anything starts: infrastructure, prices, and what it cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from jobs.backends.base import AvoidedNode, Candidate, CloudState, GpuState, Plan
from jobs.backends.skypilot.avoiding import why_not_avoided
from jobs.backends.skypilot.calls import SkyPilotCalls
from jobs.backends.skypilot.task import described
from jobs.backends.skypilot.views import Row
from jobs.errors import BackendError, BackendUnavailableError, NoCapacityError

# What SkyPilot says of clouds and GPUs changes slowly, and takes seconds to find out.
FRESH_S = 60.0
# As of SkyPilot 0.14; if the cloud is chosen later, its refusal of the stop is reported then.
# fmt: off
NEVER_STOPPED = frozenset({
    "cudo", "fluidstack", "hyperbolic", "k8s", "kubernetes", "lambda", "primeintellect", "runpod",
    "shadeform", "slurm", "ssh", "verda", "yotta",
})
# fmt: on


def why_never_stopped(cloud: str) -> str:
    """Explain why machines of this cloud can't be stopped with their disks kept; "" if they can."""
    if cloud.lower() not in NEVER_STOPPED:
        return ""
    return f"SkyPilot can't switch off machines of {cloud} and keep them; use `then: down`."


def _cloud_of(spec: dict[str, Any]) -> str:
    resources = spec.get("resources") or {}
    return str(resources.get("infra") or resources.get("cloud") or "").partition("/")[0]


class Offers:
    """The part of the backend that starts nothing."""

    def __init__(self, calls: SkyPilotCalls) -> None:
        self._calls = calls

    def warm_up(self) -> None:
        """Get ready to be asked, which takes seconds. Returns at once."""
        self._calls.warm_up()

    def check(self, spec: dict[str, Any]) -> list[tuple[str, str]]:
        """List what the chosen infrastructure cannot do, in SkyPilot's words.

        Without an answer in time nothing is refused: the launch will say the same.
        """
        idle = (spec.get("portal") or {}).get("idle") or {}
        if idle.get("then") == "stop" and (why := why_never_stopped(_cloud_of(spec))):
            return [("portal.idle.then", why)]
        try:
            self._calls.value("validate", task=described(spec))
        except (BackendUnavailableError, NoCapacityError):
            return []
        except BackendError as error:
            return [("resources", error.message)]
        return []

    def why_not_avoided(self, spec: dict[str, Any], node: AvoidedNode) -> str:
        """Explain why not: Slurm takes names of nodes; a cloud picks machines itself."""
        return why_not_avoided(spec, node)

    def capacity_gpus(self) -> None:
        """Return no limit: SkyPilot reports a lack of capacity at the launch."""
        return

    def capacity_nodes(self) -> None:
        """Return None: quotas alone limit it; a cloud reports itself when it is full."""
        return

    def plan(self, spec: dict[str, Any]) -> Plan:
        """Return SkyPilot's own candidates with exact prices."""
        answer = self._calls.value("plan", fresh_s=10.0, task=described(spec))
        candidates = tuple(map(candidate_of, answer["candidates"]))
        return Plan(candidates, tuple(str(reason) for reason in answer.get("reasons") or ()))

    def clouds(self) -> list[CloudState]:
        """List every cloud, with the reason why it is not enabled."""
        rows = self._calls.value("clouds", fresh_s=FRESH_S)
        return [
            CloudState(str(row["cloud"]), bool(row["enabled"]), str(row.get("reason") or ""))
            for row in rows
        ]

    def gpus(self) -> list[GpuState]:
        """List the GPUs of Slurm and Kubernetes, which can be counted."""
        rows = self._calls.value("gpus", fresh_s=FRESH_S)
        return [gpu_of(row) for row in rows]


def candidate_of(row: Row) -> Candidate:
    """Convert a candidate of `plan`."""
    return Candidate(
        infra=str(row["infra"]),
        instance_type=str(row.get("instance_type") or ""),
        cpus=_amount(row.get("cpus")),
        memory=_amount(row.get("memory")),
        accelerators=_gpus_text(row.get("accelerators") or {}),
        use_spot=bool(row.get("use_spot")),
        usd_per_hour=Decimal(str(row["usd_per_hour"])),
        is_chosen=bool(row.get("chosen")),
    )


def _amount(value: float | str | None) -> str:
    """Format an amount of a machine: `192`, not `192.0`; "" if it is not known."""
    return f"{value:g}" if isinstance(value, int | float) else value or ""


def _gpus_text(counts: Mapping[str, float]) -> str:
    """Format the accelerators of a machine as a specification names them: `H100:8`."""
    return ", ".join(f"{name}:{count:g}" for name, count in counts.items())


def gpu_of(row: Row) -> GpuState:
    """Convert a row of `gpus`. Where SkyPilot may not see what is free, 0 are free."""
    return GpuState(
        infra=str(row["infra"]),
        node=str(row.get("node") or ""),
        gpu=str(row["gpu"]),
        total=int(row["total"]),
        free=int(row["free"] or 0),
    )
