"""The top level of a specification: SkyPilot's task, and the portal's block."""

from __future__ import annotations

import re
from typing import Any

from monarch_client.spec.accelerators import accelerators_can_be_counted
from monarch_client.spec.array_keys import array_leaves_envs_alone
from monarch_client.spec.config_keys import CONFIG
from monarch_client.spec.envs import ENVS
from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.locations import GIT_URL, Source
from monarch_client.spec.mount_keys import FILE_MOUNTS, VOLUMES, refuse_inline_volumes
from monarch_client.spec.portal_keys import MOST_NODES, PARENTS_DRIVER, PORTAL, PORTAL_KEYS
from monarch_client.spec.resource_keys import RESOURCE_KEYS, RESOURCES
from monarch_client.spec.secret_keys import Secrets, refuse_envs_that_are_secrets
from monarch_client.spec.shapes import Either, Text, Whole
from monarch_client.spec.tables import Key, Table, Tier

# bash gets the script as one argument, and the kernel takes none above 128 KiB.
_script = Text("a script", most_bytes=100 * 1024)
_GIT_KEYS = (
    Key(
        "url",
        "The repository.",
        Text("the URL of a repository", GIT_URL),
        "https://github.com/org/repo.git",
        required=True,
    ),
    Key(
        "ref",
        "A branch, tag or commit; by default the repository's own.",
        Text("a branch, tag or commit", r"[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}"),
        "main",
    ),
)


def _no_password(values: dict[str, Any], path: str, findings: Findings) -> None:
    """Refuse a URL with a password or token, which all who see the job could read."""
    match = re.match(r"(https|ssh|git)://([^/@]*)@", str(values.get("url") or ""))
    if match and (match[1] != "ssh" or ":" in match[2]):
        where = join(path, "url")
        message = (
            f"{where} holds a user or password, which all who see the job could read. "
            "Leave it out, and give the job a secret GIT_TOKEN."
        )
        findings.add(where, SpecCode.BAD_VALUE, message)


GIT = Table(_GIT_KEYS, rules=(_no_password,), words="a mapping with url and ref")
_NO_GROUPS = "the portal has no job groups: use meshes, or jobs that depend on one another."
_BOOKKEEPING = "SkyPilot's own bookkeeping, never part of a specification."


def _nodes_fit_meshes(values: dict[str, Any], _: str, findings: Findings) -> None:
    """Set `num_nodes` to the sum of the meshes, or 1; refuse a given number that differs."""
    total = _nodes_of_meshes(values)
    given = values.setdefault("num_nodes", total or 1)
    if not total or not isinstance(given, int):
        return
    if total > MOST_NODES:
        message = f"The meshes have {total} nodes in all; {MOST_NODES} is the most."
        findings.add("portal.meshes", SpecCode.BAD_VALUE, message)
    elif given != total:
        message = (
            f"num_nodes is {given}, but the meshes have {total} nodes in all: "
            "leave num_nodes out, or make them agree."
        )
        findings.add("num_nodes", SpecCode.CONFLICT, message)


def _idle_is_counted(values: dict[str, Any], _: str, findings: Findings) -> None:
    """Refuse `idle` in a job with a driver that neither keeps its cluster nor watches its GPUs."""
    portal = values.get("portal")
    if not isinstance(portal, dict) or not isinstance(portal.get("idle"), dict):
        return
    is_counted = portal.get("reuse") or "gpu_below" in portal["idle"]
    if portal.get("gateway") and not is_counted and str(values.get("run") or "").strip():
        message = (
            "portal.idle without portal.reuse or gpu_below ends jobs that wait for laptops: leave "
            "`run` out, or leave portal.idle out."
        )
        findings.add("portal.idle", SpecCode.CONFLICT, message)


def _parents_driver_has_no_run(values: dict[str, Any], _: str, findings: Findings) -> None:
    if _serves_parent(values) and values.get("run"):
        message = "portal.driver: parent leaves the meshes to the parent's driver: remove run."
        findings.add("run", SpecCode.CONFLICT, message)


def _nodes_of_meshes(values: dict[str, Any]) -> int:
    portal = values.get("portal")
    meshes = portal.get("meshes") if isinstance(portal, dict) else None
    counts = list(meshes.values()) if isinstance(meshes, dict) else []
    return sum(counts) if all(isinstance(count, int) for count in counts) else 0


def _waits_for_laptops(values: dict[str, Any]) -> bool:
    portal = values.get("portal")
    return isinstance(portal, dict) and portal.get("gateway") is True


def _serves_parent(values: dict[str, Any]) -> bool:
    portal = values.get("portal")
    return isinstance(portal, dict) and portal.get("driver") == PARENTS_DRIVER


def _may_lack_run(values: dict[str, Any]) -> bool:
    return _waits_for_laptops(values) or _serves_parent(values)


def _internal(name: str) -> Key:
    return Key(name, "Internal to SkyPilot.", tier=Tier.PORTAL, why=_BOOKKEEPING)


TASK_KEYS = (
    Key(
        "name",
        "What the job is called in tables and messages.",
        Text("letters, digits and . _ -, at most 100", r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"),
        "ppo",
        default="job",
    ),
    Key(
        "num_nodes",
        "How many nodes; with meshes their sum, which is also the default.",
        Whole(1, MOST_NODES),
        2,
    ),
    Key(
        "workdir",
        "The folder that every node works in: one here, which the CLI uploads, or a git repository "
        "that every node fetches.",
        Either((Source(), GIT)),
        ".",
    ),
    Key(
        "run",
        "The command to run: on every node, or with meshes the driver, once, on rank 0. Required, "
        "except in a Monarch job with `portal.gateway`, which may have no driver, or with "
        "`portal.driver: parent`.",
        _script,
        "python train.py",
        required=True,
        optional_if=_may_lack_run,
        default="",
    ),
    Key(
        "setup",
        "What prepares each node, before `run` begins anywhere. `run` reads `~/.bashrc` first, and "
        "so finds what `setup` has put there.",
        _script,
        "pip install -r requirements.txt",
    ),
    Key(
        "envs",
        "Environment variables of setup and run. Anyone who sees the job sees them.",
        ENVS,
        {"LEARNING_RATE": "3e-4"},
        default={},
    ),
    Key("resources", "What each node must be.", RESOURCES, {"accelerators": "H100:8"}, default={}),
    Key(
        "file_mounts",
        "What else is put onto the nodes: uploads, and buckets where the backend has them.",
        FILE_MOUNTS,
        {"/data": "s3://datasets/imagenet"},
        default={},
    ),
    Key("volumes", "Volumes to mount, by name.", VOLUMES, {"/mnt/data": "team-data"}),
    Key("portal", "What the portal does for the job.", PORTAL, {"priority": 80}, default={}),
    Key(
        "config",
        "SkyPilot's settings for this task.",
        CONFIG,
        {"slurm": {"sbatch_options": {"qos": "high"}}},
        tier=Tier.ADMIN,
        why="some of these settings run code on the host that provisions.",
    ),
    Key(
        "event_callback",
        "A script that SkyPilot runs when a task changes its status.",
        _script,
        "notify.sh",
        tier=Tier.ADMIN,
        why="it runs on the host that provisions, not on the job's nodes.",
    ),
    Key(
        "secrets",
        "Secrets of the project that setup and run find in their environment: a list of names, or "
        "a mapping of environment variables to names. Values are never written here.",
        Secrets(),
        {"HF_TOKEN": "TEAM_HF_TOKEN", "WANDB_API_KEY": None},
        names="secrets",
    ),
    Key(
        "managed_secrets",
        "Secrets that a SkyPilot plugin keeps.",
        tier=Tier.LATER,
        why="the portal keeps secrets of projects itself: use secrets.",
    ),
    Key(
        "service",
        "Replicas behind a load balancer.",
        tier=Tier.LATER,
        why="a job ends, and has no replicas behind a load balancer. Serve it with `sky serve up`, "
        "or run one server as a job, and reach it with `mportal ssh JOB -N -L PORT`.",
    ),
    Key(
        "execution",
        "How the documents of a file run: `serial` in the first of them, beside `name` alone.",
        tier=Tier.LATER,
        why="documents of one file run in order; for jobs that run at the same time submit "
        "several files.",
    ),
    *(
        Key(name, "A setting of SkyPilot's job groups.", tier=Tier.LATER, why=_NO_GROUPS)
        for name in ("primary_tasks", "termination_delay", "inter_connection")
    ),
    Key("pool", "A pool of waiting workers.", tier=Tier.LATER, why="the portal keeps no pools."),
    Key("inputs", "Sizes for SkyPilot's planner.", tier=Tier.LATER, why="nothing plans by them."),
    Key("outputs", "Sizes for SkyPilot's planner.", tier=Tier.LATER, why="nothing plans by them."),
    Key(
        "api_server_access",
        "Whether the job may call SkyPilot's API server.",
        tier=Tier.PORTAL,
        why="jobs never get the portal's own rights; they use MPORTAL_TOKEN.",
    ),
    _internal("file_mounts_mapping"),
    _internal("volume_mounts"),
    _internal("_metadata"),
)


def _elsewhere() -> tuple[tuple[str, str], ...]:
    keys = [("resources", key) for key in RESOURCE_KEYS] + [("portal", k) for k in PORTAL_KEYS]
    return tuple((key.name, f"{place}.{key.name}") for place, key in keys if not key.is_refused)


TASK = Table(
    TASK_KEYS,
    rules=(
        _idle_is_counted,
        _parents_driver_has_no_run,
        _nodes_fit_meshes,
        refuse_inline_volumes,
        refuse_envs_that_are_secrets,
        array_leaves_envs_alone,
        accelerators_can_be_counted,
    ),
    elsewhere=_elsewhere(),
    words="a mapping of keys to values",
)
