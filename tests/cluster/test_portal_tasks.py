"""A task context on two nodes of Slurm: a map-reduce whose objects cross the nodes' network."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.portal import PROJECT, PortalOnRig
from tests.cluster.rig import places
from tests.cluster.rig.machine import Rig
from tests.cluster.rig.spaces import run
from tests.own_network import OwnNetwork
from tests.programs import runner_in
from tests.waiting import eventually

LOOKED_AT = "/run/rig/tasks-looked-at"
DRIVER = """
cat > driver.py <<'END'
import os, signal, socket, time
from pathlib import Path

import numpy as np
from monarch_client.context import ActorOptions, JobContext, get_job_context
from mportal_runtime import meshes

PARTS, COUNT = 8, 400_000
SIZE = 20_000_000

class Reader:
    def host(self):
        return socket.gethostname()
    def read(self, array):
        return int(array[-1])
    def make(self):
        return np.full(SIZE, 5, np.uint8)
    def received(self):
        counts = [line.split() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
        return sum(int(count) for name, count, *_ in counts if name != "lo:")
    def peers(self, port):
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)

def split(seed):
    time.sleep(0.3)  # else one host may take all of them
    numbers = np.random.default_rng(seed).integers(0, 2**32, COUNT, dtype=np.uint64)
    context = get_job_context()
    pieces = [context.put(numbers[numbers % PARTS == part]) for part in range(PARTS)]
    print("split", seed)
    return socket.gethostname(), int(numbers.sum()), pieces

def merge(part, *pieces):
    mark = Path("/tmp/was-killed")
    if part == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    merged = np.concatenate(pieces)
    merged.sort()
    return socket.gethostname(), merged

def check(part, found):
    made_on, merged = found
    assert (merged % PARTS == part).all() and (merged[1:] >= merged[:-1]).all()
    return made_on == socket.gethostname(), len(merged), int(merged.sum())

def spoil():
    raise ValueError("spoilt on purpose")

context = JobContext(meshes.workers)
# Objects that are read by all processes of the other host.
light = ActorOptions(resources={"CPU": 0.01})
readers = [context.create_actor(Reader, options=light) for _ in range(8)]
hosts = context.get([each.host() for each in readers], timeout=60)
groups = [[each for each, at in zip(readers, hosts) if at == host] for host in sorted(set(hosts))]
print("readers on", *sorted(set(hosts)), flush=True)
array = groups[0][0].make()
context.wait([array], timeout=60)
before = context.get(groups[1][0].received())
values = context.get([each.read(array) for each in groups[1] * 3], timeout=60)
received = context.get(groups[1][0].received()) - before
print("copies", round(received / SIZE, 1), "values", set(values), flush=True)
agents = context._driver.hosts._hosts.hosts
ports = [int(agent.description.address.rpartition(":")[2]) for agent in agents]
direct = sum(context.get(group[0].peers(port)) for group in groups for port in ports)
print("connected", direct > 0, flush=True)
del array, groups, readers  # and their CPUs

maps = context.get([context.create_task(split, (seed,)) for seed in range(PARTS)], timeout=120)
print("mapped on", *sorted({host for host, _, _ in maps}), flush=True)
merged = [
    context.create_task(merge, (part, *(pieces[part] for _, _, pieces in maps)))
    for part in range(PARTS)
]
context.wait(merged, len(merged), timeout=120)
checked = [  # one after the other: there is room on each host
    context.get(context.create_task(check, (part, each)), timeout=60)
    for part, each in enumerate(merged)
]
print("local", all(row[0] for row in checked), flush=True)
complete = sum(row[1] for row in checked) == PARTS * COUNT
right = sum(row[2] for row in checked) == sum(row[1] for row in maps)
print("complete", complete, "right", right, flush=True)
try:
    context.get(context.create_task(spoil))
except ValueError as error:
    print("failed:", error, flush=True)
print("waiting", flush=True)
while not os.path.exists("LOOKED_AT"):
    time.sleep(0.1)
context.close()
END
python3 driver.py
""".replace("LOOKED_AT", LOOKED_AT)
SPEC: dict[str, Any] = {
    "name": "map-reduce",
    "num_nodes": 2,
    "resources": {"infra": "slurm/rig/main"},
    # In place of `pip install monarch-portal[context]`: nodes see the checkout.
    "envs": {"PYTHONPATH": str(places.CHECKOUT)},
    "run": DRIVER,
    "portal": {"meshes": {"workers": 2}, "gateway": True},
}
# Its objects of 10 MB pass through the gateway in both directions, but for one between the nodes.
ON_A_LAPTOP = """
import socket, sys
import numpy as np
from monarch_client.context import ActorOptions, JobContext
from monarch_client.gateway import connect

def say(*words):
    print("said:", *words, flush=True)

class Reader:
    def host(self):
        return socket.gethostname()
    def make(self, number):
        return np.full(10_000_000, number, np.uint8)
    def total(self, array):
        return int(array.sum(dtype=np.uint64))

say(*[name for _, name in socket.if_nameindex()])
with connect(int(sys.argv[1])) as meshes, JobContext(meshes.workers) as context:
    light = ActorOptions(resources={"CPU": 0.01})
    readers = [context.create_actor(Reader, options=light) for _ in range(4)]
    by_host = dict(zip(context.get([each.host() for each in readers], timeout=60), readers))
    first, second = by_host.values()
    put = context.put(np.full(10_000_000, 2, np.uint8))
    say(*context.get([first.total(put), second.total(put)], timeout=60))
    made = first.make(3)
    say(context.get(second.total(made), timeout=60), int(context.get(made, timeout=60)[-1]))
    say(len(context.get([context.create_task(sorted, ([n, 0],)) for n in range(50)], timeout=60)))
"""


def context_of(portal: PortalOnRig, number: int, machine: str) -> dict[str, Any]:
    """Return the report of the job's own driver, or of one on a machine outside of the job."""
    with portal.client() as client:
        found = client.get(f"{PROJECT}/jobs/{number}/tasks").json()["contexts"]
    contexts = [dict(each) for each in found if each["machine"] == machine]
    return contexts[0] if contexts else {"tasks": []}


def finished(context: dict[str, Any]) -> dict[str, int]:
    """Return the number of calls of each name that have a result."""
    return {row["name"]: row["finished"] for row in context["tasks"]}


@pytest.fixture(scope="module")
def number(rig: Rig, portal: PortalOnRig) -> Iterator[int]:
    """Submit the job, and wait until its driver waits for the test."""
    number = portal.submit(**SPEC)
    portal.wait_until(number, lambda _: "] waiting" in portal.log(number))
    yield number
    run("touch", LOOKED_AT)
    assert portal.wait_for(number)["status"] == "SUCCEEDED", portal.log(number)
    assert eventually(lambda: set(rig.states().values()) == {"idle"}, timeout_s=90)


@pytest.mark.feature("S4.4")
@pytest.mark.timeout(400)
def test_a_map_reduce_on_two_nodes_moves_its_objects_once_and_loses_no_result(
    number: int, portal: PortalOnRig
) -> None:
    said = dict(
        re.findall(
            r"^\[0\] (readers on|copies|connected|mapped on|local|complete|failed:) (.*)$",
            portal.log(number),
            re.MULTILINE,
        )
    )
    nodes = re.findall(r"rig-\d", said["readers on"])
    assert len(nodes) == 2
    copies, _, values = said["copies"].partition(" values ")
    # Twelve or more reads in several processes: the bytes of one copy, and of the messages.
    assert (1.0 <= float(copies) < 1.5, values) == (True, "{5}")
    assert said["connected"] == "True"
    assert said["mapped on"] == said["readers on"]
    assert (said["local"], said["complete"]) == ("True", "True right True")


@pytest.mark.feature("S4.6")
def test_its_tasks_objects_and_failures_are_seen_while_it_runs(
    number: int, portal: PortalOnRig
) -> None:
    def seen_finished() -> dict[str, int]:
        return finished(context_of(portal, number, ""))

    assert eventually(lambda: seen_finished().get("check") == 8), seen_finished()
    seen = context_of(portal, number, "")
    assert (finished(seen)["split"], finished(seen)["merge"]) == (8, 8)
    hosts = {row["name"]: row for row in seen["hosts"]}
    nodes = [name for name in hosts if name.startswith("rig-")]
    assert len(nodes) == 2
    # The pieces, and what was merged of them.
    assert sum(hosts[name]["bytes"] for name in nodes) > 2 * 8 * 8 * 400_000
    [failure] = seen["failures"]
    assert (failure["name"], failure["host"] in nodes) == ("spoil", True)
    assert "ValueError: spoilt on purpose" in failure["trace"]
    assert re.search(r"\(split, pid \d+\) split 7$", portal.log(number), re.MULTILINE)


@pytest.mark.feature("S1.1")
@pytest.mark.timeout(400)
def test_a_laptop_that_reaches_the_portal_alone_moves_objects_and_reports_its_tasks(
    number: int, portal: PortalOnRig, tmp_path: Path
) -> None:
    laptop = OwnNetwork(int(portal.url.rpartition(":")[2]))
    run_program = runner_in(tmp_path, laptop.prefix, end_s=200)
    # The job has a driver of its own.
    assert portal.mportal("project", "laptops", "default", "--allow").returncode == 0
    try:
        account = {"MPORTAL_URL": portal.url, "MPORTAL_TOKEN": portal.token}
        found = run_program(ON_A_LAPTOP, number, **account)
    finally:
        laptop.close()
        portal.mportal("project", "laptops", "default", "--refuse")
    assert found == ["lo", "20000000 20000000", "30000000 3", "50"]

    def reported() -> dict[str, Any]:
        return context_of(portal, number, socket.gethostname())

    assert eventually(lambda: reported().get("is_open") is False), reported()
    assert finished(reported())["sorted"] == 50
    assert finished(reported())["Reader.total"] == 3
