"""The keys of `portal`: what the portal itself does for a job."""

from __future__ import annotations

import keyword
from typing import Any

from monarch_client.spec.array_keys import ARRAY_KEY, MAX_PARALLEL_KEY, array_is_sound
from monarch_client.spec.dependency_keys import DEPENDS_ON_KEY, IF_DEPENDENCY_FAILS_KEY
from monarch_client.spec.durations import Duration
from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.label_keys import LABELS_KEY, labels_are_sound
from monarch_client.spec.log_policy_keys import LOG_POLICIES_KEY, names_are_used_once
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from monarch_client.spec.shapes import Flag, KeyName, Listing, Mapping, Number, OneOf, Text, Whole
from monarch_client.spec.tables import Key, Table, Tier

MOST_NODES = 10_000
DEFAULT_PORT = 22_222
MOST_PORT = 65_000
# The workers', and the two of the runners.
PORTS_OF_JOB = 3
# Then the ports of children repeat.
_CHILDREN = 100
SLUG = r"[a-z][a-z0-9-]{0,38}"
CLUSTER_NAME = r"[a-z][a-z0-9-]{0,59}"
# Which program uses the meshes: `run`, or the driver of the job that submits this one.
OWN_DRIVER, PARENTS_DRIVER = "own", "parent"
MOST_IDLE_MINUTES = 60 * 24 * 366


def _mesh_complaint(name: str) -> str | None:
    if keyword.iskeyword(name):
        return f"{name!r} is a Python keyword; the driver could not use meshes.{name}."
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
        "The most attempts in total after failures of the program, its setup or its memory.",
        Whole(1, 100),
        3,
        default=1,
    ),
    Key(
        "max_recoveries",
        "The most recoveries after a node is lost or preempted.",
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
        "How long the cluster waits for the next job; with `gpu_below`, also how long the job's "
        "GPUs may be idle; in a job without a driver (see `gateway`), how long it waits for "
        "laptops. Setup of a job is not idle time.",
        Whole(1, MOST_IDLE_MINUTES),
        10,
        required=True,
    ),
    Key(
        "then",
        "`down` terminates the machines; `stop` stops them and keeps their disks, if the cloud "
        "supports it.",
        OneOf(("stop", "down")),
        "stop",
        default="down",
    ),
    Key(
        "down_after",
        "Minutes after which a stopped cluster is terminated; without it, only users do that.",
        Whole(1, MOST_IDLE_MINUTES),
        60,
    ),
    Key(
        "gpu_below",
        "Stops a running job once every GPU of every node was below this utilization, in percent, "
        "for `minutes`. If the utilization is unknown, nothing is stopped.",
        Whole(1, 100),
        5,
    ),
)


_CONCURRENCY_KEYS = (
    Key(
        "group",
        "Jobs of the project with the same group count together.",
        Text("a group's short name, such as eval", SLUG),
        "eval",
        required=True,
    ),
    Key(
        "max",
        "The most of them that run at once; if jobs differ, the lowest value counts.",
        Whole(1, MOST_NODES),
        2,
        default=1,
    ),
)


PORTAL_KEYS = (
    Key(
        "project",
        "The job's project; by default the one it is submitted to.",
        Text("a project's short name, such as rl", SLUG),
        "rl",
    ),
    Key(
        "meshes",
        "Named meshes with their numbers of nodes, assigned in rank order. They make it a Monarch "
        "job: `run` is the driver, which runs once, on rank 0.",
        MESHES,
        {"trainers": 2, "generators": 1},
        default={},
    ),
    Key(
        "mesh_order",
        "The order in which nodes are assigned to the meshes; by default as written.",
        Listing(MESH_NAME, most=100),
        ["generators", "trainers"],
    ),
    Key(
        "driver",
        "`parent` makes a job without `run`, whose workers serve the driver that submits it: use "
        "`mportal_runtime.request_mesh`. The job ends with that attempt and is not retried.",
        OneOf((OWN_DRIVER, PARENTS_DRIVER)),
        PARENTS_DRIVER,
        default=OWN_DRIVER,
    ),
    Key(
        "port",
        "The port on which Monarch's workers listen; the runners use the next two. "
        "A requested mesh has ports of its own after those of its driver's job. "
        "On the local backend another is chosen if a program uses the default one.",
        Whole(1024, MOST_PORT),
        22_222,
        default=DEFAULT_PORT,
    ),
    Key(
        "gateway",
        "Lets programs on laptops attach to the job's meshes through the portal. Without `run` the "
        "job has no driver: its workers wait for laptops, and the job ends after `idle.minutes` "
        "without one.",
        Flag(),
        True,
    ),
    Key(
        "queue",
        "The job's queue.",
        Text("a queue's short name, such as default", SLUG),
        "default",
        default="default",
        names="queues",
    ),
    LABELS_KEY,
    Key(
        "hold",
        "Submits the job held: it does not start before a user releases it. A rerun is not held.",
        Flag(),
        True,
    ),
    Key(
        "priority",
        "Higher comes first among the jobs of the project.",
        Whole(LOWEST_PRIORITY, HIGHEST_PRIORITY),
        80,
        default=50,
    ),
    Key(
        "preemptible",
        "Allows preemption, if the pool has it enabled: the job gets time to save its work, "
        "returns to the queue, and continues with its next attempt.",
        Flag(),
        True,
    ),
    Key(
        "detached",
        "Lets a child job outlive its parent; without it, it is cancelled when the parent ends.",
        Flag(),
        True,
    ),
    Key(
        "concurrency",
        "Limits how many jobs of a group run at once; the others wait.",
        Table(_CONCURRENCY_KEYS, words="a mapping with group and max"),
        {"group": "eval", "max": 2},
    ),
    Key(
        "max_duration",
        "The longest run of one attempt.",
        Duration(),
        "12h",
    ),
    Key(
        "budget_usd",
        "The budget of all attempts of the job together, in US$. At 80 % the job's history has a "
        "warning, at 100 % the job is stopped.",
        Number(most=10_000_000),
        400,
    ),
    Key(
        "retry",
        "Automatic retries and recoveries.",
        Table(_RETRY_KEYS, words="a mapping with max_attempts and max_recoveries"),
        {"max_attempts": 3},
        default={},
    ),
    Key(
        "reuse",
        "Keeps the cluster warm for the project's next job with the same machines, and runs on a "
        "matching warm cluster if there is one.",
        Flag(),
        True,
    ),
    Key(
        "idle",
        "When an idle warm cluster (see `reuse`) is stopped or terminated, and when a job with "
        "idle GPUs is stopped.",
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
        message = f"{where} must name each mesh exactly once."
        findings.add(where, SpecCode.CONFLICT, message)
    else:
        values["meshes"] = {name: meshes[name] for name in order}


def _idle_goes_together(values: dict[str, Any], path: str, findings: Findings) -> None:
    idle = values.get("idle")
    if not isinstance(idle, dict):
        return
    where = join(path, "idle")
    takes_reuse = f"is about warm clusters: it needs {join(path, 'reuse')}: true"
    if not values.get("reuse") and not values.get("gateway") and "gpu_below" not in idle:
        findings.add(where, SpecCode.CONFLICT, f"{where} {takes_reuse}, or gpu_below.")
    elif not values.get("reuse") and idle.get("then") == "stop":
        inner = join(where, "then")
        findings.add(inner, SpecCode.CONFLICT, f"{inner}: stop {takes_reuse}.")
    if idle.get("down_after") is not None and idle.get("then") == "down":
        inner = join(where, "down_after")
        message = f"{inner} counts from the moment of `then: stop`; with `down` nothing is left."
        findings.add(inner, SpecCode.CONFLICT, message)


def _gateway_needs_meshes(values: dict[str, Any], path: str, findings: Findings) -> None:
    if values.get("gateway") is True and not values.get("meshes"):
        where = join(path, "gateway")
        message = f"{where} is for Monarch jobs: laptops attach to {join(path, 'meshes')}."
        findings.add(where, SpecCode.CONFLICT, message)


def port_of_child(parent: int, earlier: int) -> int:
    """Return the workers' port of a child whose parent has had `earlier` children."""
    distance = PORTS_OF_JOB * (1 + earlier % _CHILDREN)
    return parent + distance if parent + distance <= MOST_PORT else parent - distance


def _parents_driver_goes_together(values: dict[str, Any], path: str, findings: Findings) -> None:
    if values.get("driver") != PARENTS_DRIVER:
        return
    where = join(path, "driver")
    if not values.get("meshes"):
        findings.add(where, SpecCode.CONFLICT, f"{where}: parent needs {join(path, 'meshes')}.")
    for name in ("detached", "preemptible", "array", "gateway"):
        if values.get(name):
            message = f"{where}: parent does not go with {join(path, name)}."
            findings.add(join(path, name), SpecCode.CONFLICT, message)


PORTAL = Table(
    PORTAL_KEYS,
    rules=(
        _order_names_meshes,
        _gateway_needs_meshes,
        _parents_driver_goes_together,
        _idle_goes_together,
        names_are_used_once,
        labels_are_sound,
        array_is_sound,
    ),
    words="a mapping of the portal's own keys",
)
