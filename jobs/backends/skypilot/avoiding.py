"""Nodes that a job is to avoid: Slurm can exclude them, other infrastructure cannot. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jobs.backends.base import AvoidedNode

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# What sbatch takes it by.
_OPTION, _SHORT = "exclude", "x"


def why_not_avoided(spec: Mapping[str, Any], node: AvoidedNode) -> str:
    """Explain why a launch can't be kept off the node; "" if it can."""
    cluster = _slurm_cluster(node.infra)
    if not cluster:
        return "Only Slurm can exclude nodes."
    # A name that Slurm does not know would keep the job from starting at all.
    if {_slurm_cluster(place) for place in _infras(spec)} != {cluster}:
        return f"Slurm excludes nodes only if resources.infra is slurm/{cluster}."
    if not _NAME.fullmatch(node.host):
        return "The node did not report the name by which Slurm knows it."
    return ""


def config_avoiding(spec: Mapping[str, Any], nodes: Iterable[AvoidedNode]) -> dict[str, Any]:
    """Return SkyPilot's settings for the task: the specification's own, and the excluded nodes."""
    config = dict(spec.get("config") or {})
    hosts = sorted({node.host for node in nodes if not why_not_avoided(spec, node)})
    if hosts:
        slurm = dict(config.get("slurm") or {})
        options = dict(slurm.get("sbatch_options") or {})
        own = [str(options[name]) for name in (_OPTION, _SHORT) if options.get(name)]
        options.pop(_SHORT, None)
        options[_OPTION] = ",".join([*own, *hosts])
        config["slurm"] = {**slurm, "sbatch_options": options}
    return config


def _infras(spec: Mapping[str, Any]) -> list[str]:
    """List the infrastructure on which the job may run, as `infra` names it."""
    resources = spec.get("resources") or {}
    choices = resources.get("any_of") or resources.get("ordered") or [{}]
    return [_infra_of({**resources, **choice}) for choice in choices]


def _infra_of(resources: Mapping[str, Any]) -> str:
    if resources.get("infra"):
        return str(resources["infra"])
    return f"{resources.get('cloud') or ''}/{resources.get('region') or ''}"


def _slurm_cluster(infra: str) -> str:
    cloud, _, rest = infra.partition("/")
    cluster = rest.partition("/")[0]
    return cluster if cloud.lower() == "slurm" and cluster != "*" else ""
