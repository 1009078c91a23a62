"""The keys of `portal`: what the portal itself does for a job."""

from __future__ import annotations

import keyword
from typing import Any

from monarch_client.spec.array_keys import ARRAY_KEY, MAX_PARALLEL_KEY, array_is_sound
from monarch_client.spec.dependency_keys import DEPENDS_ON_KEY, IF_DEPENDENCY_FAILS_KEY
from monarch_client.spec.durations import Duration
from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.log_policy_keys import LOG_POLICIES_KEY, names_are_used_once
from monarch_client.spec.shapes import Flag, KeyName, Listing, Mapping, Number, OneOf, Text, Whole
from monarch_client.spec.tables import Key, Table, Tier

MOST_NODES = 10_000
LOWEST_PRIORITY, HIGHEST_PRIORITY = 0, 100
DEFAULT_PORT = 22_222
SLUG = r"[a-z][a-z0-9-]{0,38}"
CLUSTER_NAME = r"[a-z][a-z0-9-]{0,59}"
MOST_IDLE_MINUTES = 60 * 24 * 366


def _mesh_complaint(name: str) -> str | None:
    if keyword.iskeyword(name):
        return f"{name!r} is a word of Python itself; the driver could not write meshes.{name}."
    return None


_MESH_PATTERN = r"[A-Za-z][A-Za-z0-9_]{0,59}"
MESH_NAME = Text("a mesh's name", _MESH_PATTERN)
MESHES = Mapping(
    "a mapping of mesh names to their numbers of nodes",
    KeyName(
        "a name that Python could use for a variable (letters, digits and _, a letter first)",
        _MESH_PATTERN,
        _mesh_complaint,
    ),
    Whole(1, MOST_NODES),
    most=100,
)

_RETRY_KEYS = (
    Key(
        "max_attempts",
        "How often the job may run in all when its own code, its setup or its memory ends it.",
        Whole(1, 100),
        3,
        default=1,
    ),
    Key(
        "max_recoveries",
        "How often it may begin again when a node is lost or taken away.",
        Whole(0, 1000),
        5,
        default=5,
    ),
)


def _later(name: str, about: str, example: Any) -> Key:
    return Key(name, about, example=example, tier=Tier.LATER, why="leave it out for now.")


_IDLE_KEYS = (
    Key(
        "minutes",
        "How long the cluster waits for a next job; with `gpu_below`, how long the job may leave "
        "its GPUs idle as well. What a job takes to set up is not idleness.",
        Whole(1, MOST_IDLE_MINUTES),
        10,
        required=True,
    ),
    Key(
        "then",
        "`down` gives the machines back; `stop` switches them off and keeps their disks, where "
        "the cloud can.",
        OneOf(("stop", "down")),
        "stop",
        default="down",
    ),
    Key(
        "down_after",
        "After how many minutes switched off they are given back; without it, by hand only.",
        Whole(1, MOST_IDLE_MINUTES),
        60,
    ),
    Key(
        "gpu_below",
        "Stops the job, although its program lives, once every GPU of every node was used less "
        "than so many per cent for `minutes` on end. Where that is not known, nothing is stopped.",
        Whole(1, 100),
        5,
    ),
)


_CONCURRENCY_KEYS = (
    Key(
        "group",
        "Jobs of the project that name the same group are counted together.",
        Text("a group's short name, such as eval", SLUG),
        "eval",
        required=True,
    ),
    Key(
        "max",
        "How many of them run at once; of several jobs that say it differently the least counts.",
        Whole(1, MOST_NODES),
        2,
        default=1,
    ),
)


PORTAL_KEYS = (
    Key(
        "project",
        "The project the job belongs to; by default the one it is submitted to.",
        Text("a project's short name, such as rl", SLUG),
        "rl",
    ),
    Key(
        "meshes",
        "Makes it a Monarch job: named meshes with their nodes, dealt in rank order. `run` is "
        "then the driver, once, on rank 0.",
        MESHES,
        {"trainers": 2, "generators": 1},
        default={},
    ),
    Key(
        "mesh_order",
        "The order in which nodes are dealt to the meshes; by default as they are written.",
        Listing(MESH_NAME, most=100),
        ["generators", "trainers"],
    ),
    Key(
        "port",
        "The port on which Monarch's workers listen; runners of several nodes use the next one. "
        "On the local backend another is chosen where a program uses the default one.",
        Whole(1024, 65_000),
        22_222,
        default=DEFAULT_PORT,
    ),
    Key(
        "queue",
        "The queue the job waits in.",
        Text("a queue's short name, such as default", SLUG),
        "default",
        default="default",
    ),
    Key(
        "hold",
        "Submits it held: it does not start before somebody releases it. A rerun is not held.",
        Flag(),
        True,
    ),
    Key(
        "priority",
        "Higher goes first among the jobs of its project.",
        Whole(LOWEST_PRIORITY, HIGHEST_PRIORITY),
        80,
        default=50,
    ),
    Key(
        "preemptible",
        "Lets the portal stop the job for another, where its pool allows that: it gets the time to "
        "save its work, waits again, and goes on with its next attempt.",
        Flag(),
        True,
    ),
    Key(
        "detached",
        "Lets a job that another job's program submits go on when that one has ended; without it, "
        "it is cancelled then.",
        Flag(),
        True,
    ),
    Key(
        "concurrency",
        "Lets only so many jobs of a group run at once; the others wait.",
        Table(_CONCURRENCY_KEYS, words="a mapping with group and max"),
        {"group": "eval", "max": 2},
    ),
    Key(
        "max_duration",
        "How long one attempt may run before it is stopped.",
        Duration(),
        "12h",
    ),
    Key(
        "budget_usd",
        "What all attempts of the job may cost together, in US$: at 80 % of it the job's history "
        "says so, then the job is stopped.",
        Number(most=10_000_000),
        400,
    ),
    Key(
        "retry",
        "What may happen again by itself.",
        Table(_RETRY_KEYS, words="a mapping with max_attempts and max_recoveries"),
        {"max_attempts": 3},
        default={},
    ),
    Key(
        "reuse",
        "Keeps the cluster for the project's next job that asks for the same machines, and takes "
        "one that was kept, if it fits.",
        Flag(),
        True,
    ),
    Key(
        "idle",
        "What becomes of a cluster that `reuse` keeps, once no job is on it; and of a job that "
        "leaves its GPUs idle.",
        Table(_IDLE_KEYS, words="a mapping with minutes, then, down_after and gpu_below"),
        {"minutes": 10, "gpu_below": 5, "then": "stop", "down_after": 60},
    ),
    Key(
        "cluster",
        "The name of a warm cluster of the project: the job waits for that cluster, and runs there "
        "alone, on as many of its nodes as it requests.",
        Text("a cluster's name, as the page of clusters shows it", CLUSTER_NAME),
        "mp3f9a-1b2c3d-42-1",
    ),
    LOG_POLICIES_KEY,
    DEPENDS_ON_KEY,
    IF_DEPENDENCY_FAILS_KEY,
    ARRAY_KEY,
    MAX_PARALLEL_KEY,
)


def _order_names_meshes(values: dict[str, Any], path: str, findings: Findings) -> None:
    order, meshes = values.get("mesh_order"), values.get("meshes")
    if not isinstance(order, list) or not isinstance(meshes, dict):
        return
    if sorted(map(str, order)) != sorted(meshes):
        where = join(path, "mesh_order")
        message = f"{where} must name every mesh once, and nothing else."
        findings.add(where, SpecCode.CONFLICT, message)
    else:
        values["meshes"] = {name: meshes[name] for name in order}


def _idle_goes_together(values: dict[str, Any], path: str, findings: Findings) -> None:
    idle = values.get("idle")
    if not isinstance(idle, dict):
        return
    where = join(path, "idle")
    takes_reuse = f"is about clusters that are kept: it takes {join(path, 'reuse')}: true"
    if not values.get("reuse") and "gpu_below" not in idle:
        findings.add(where, SpecCode.CONFLICT, f"{where} {takes_reuse}, or gpu_below.")
    elif not values.get("reuse") and idle.get("then") == "stop":
        inner = join(where, "then")
        findings.add(inner, SpecCode.CONFLICT, f"{inner}: stop {takes_reuse}.")
    if idle.get("down_after") is not None and idle.get("then") == "down":
        inner = join(where, "down_after")
        message = f"{inner} counts from the moment of `then: stop`; with `down` nothing is left."
        findings.add(inner, SpecCode.CONFLICT, message)


PORTAL = Table(
    PORTAL_KEYS,
    rules=(_order_names_meshes, _idle_goes_together, names_are_used_once, array_is_sound),
    words="a mapping of the portal's own keys",
)
