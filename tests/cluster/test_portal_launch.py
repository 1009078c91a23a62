"""One launch through a whole portal: chosen by price, run, watched, paid for, taken down."""

from __future__ import annotations

import shlex
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.cluster.portal import PortalOnRig
from tests.cluster.rig.machine import Rig
from tests.cluster.rig.spaces import run
from tests.waiting import eventually

PORT = 23456
# Two meshes answer, and the driver waits until the test has looked at the workers' ports.
DRIVER = """
cat > driver.py <<'END'
import pathlib, time
from monarch.actor import Actor, endpoint
from mportal_runtime import meshes

class Hello(Actor):
    @endpoint
    async def say(self, mesh):
        print("hello from", mesh, flush=True)
        return 1

for name in ("trainers", "generators"):
    procs = meshes[name].spawn_procs(per_host={"gpus": 1})
    print(name, sum(answer for _, answer in procs.spawn("hello", Hello).say.call(name).get()))
while not pathlib.Path("/run/rig/looked-at").exists():
    time.sleep(0.1)
END
python3 driver.py
"""
# Another user of a node sends a request without a certificate to each port that listens there.
STRANGER = """
import http.client, os, ssl
def answer(port, address, tls):
    connect = http.client.HTTPSConnection if tls else http.client.HTTPConnection
    options = {"context": ssl._create_unverified_context()} if tls else {}
    try:
        connection = connect(address, port, timeout=3, **options)
        connection.request("GET", "/v1/root")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
# Other users cannot read the interpreter's files: load what a connection needs before.
"localhost".encode("idna")
os.setgroups([]), os.setgid(65534), os.setuid(65534)
rows = [row.split() for row in open("/proc/net/tcp").read().splitlines()[1:]]
for each in {row[1] for row in rows if row[3] == "0A"}:
    host, port = (bytes.fromhex(part) for part in each.split(":"))
    address, number = ".".join(map(str, reversed(host))), int.from_bytes(port, "big")
    for tls in (True, False):
        print(address, number, answer(number, address, tls))
"""
SPEC: dict[str, Any] = {
    "name": "hello",
    # The first place has no room, so that the second one has to do.
    "resources": {
        "accelerators": "H100:1",
        "use_spot": True,
        "ordered": [{"infra": "rig/rig/main"}, {"infra": "rig/rig/spare"}],
    },
    "run": DRIVER,
    "portal": {"meshes": {"trainers": 1, "generators": 1}, "port": PORT},
}


@dataclass
class Launched:
    """The observations of the job: before it ran, while it ran, and afterwards."""

    plan: dict[str, Any]
    job: dict[str, Any]
    attempts: list[dict[str, Any]]
    log: str
    refusal: str
    billed: Decimal
    # What other users of each node received at its ports: address, port, HTTP status or None.
    answers: list[list[str]]
    # What each node calls itself to who logs in as the portal says, and to the portal.
    hosts: list[tuple[str, str]]


@pytest.fixture(scope="module")
def launched(rig: Rig, portal: PortalOnRig) -> Iterator[Launched]:
    """Run the job from its plan to its end, once for the tests of this file."""
    plan = portal.plan(**SPEC)
    with rig.capacity_fault("main"):
        number = portal.submit(**SPEC)
        portal.wait_until(number, lambda _: "generators 1" in portal.log(number))
    workers = portal.attempts(number)[-1]["workers"]
    addresses = [each["address"].partition(":")[0] for each in workers]
    refusal = knock(addresses[1], PORT)
    hosts = [
        (portal.over_ssh(each["ssh"], "hostname -I", rig.home), address)
        for each, address in zip(workers, addresses, strict=True)
    ]
    assert eventually(lambda: portal.meshes(number), timeout_s=60), portal.log(number)
    program = f"python3 -c {shlex.quote(STRANGER)}"
    answers = [portal.over_ssh(each["ssh"], program, rig.home).splitlines() for each in workers]
    run("touch", "/run/rig/looked-at")
    job = portal.wait_for(number)
    assert eventually(lambda: set(rig.states().values()) == {"idle"}, timeout_s=90)
    # What a cluster has cost grows until SkyPilot has forgotten it as well, a little later.
    name = portal.attempts(number)[-1]["cluster_name"]
    assert eventually(lambda: name not in portal.clusters(), timeout_s=90), portal.clusters()
    eventually(lambda: usd_of(portal.attempts(number)[-1]) == portal.billed(name), timeout_s=90)
    billed = portal.billed(name)
    yield Launched(
        plan, job, portal.attempts(number), portal.log(number), refusal, billed, answers, hosts
    )


def usd_of(attempt: dict[str, Any]) -> Decimal | None:
    """Return what an attempt has cost according to the portal."""
    return None if attempt["usd"] is None else Decimal(str(attempt["usd"]))


def knock(address: str, port: int) -> str:
    """Return what a client without a certificate of the attempt receives at a worker's port."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address, port), timeout=10) as plain,
            context.wrap_socket(plain) as tls,
        ):
            tls.settimeout(10)
            tls.sendall(b"hello")
            return f"answered {tls.recv(1)!r}"
    except ssl.SSLError as error:
        return str(error.reason)
    except ConnectionResetError:
        return "reset"


@pytest.mark.smoke
@pytest.mark.feature("S0.5")
def test_a_monarch_job_with_two_meshes_is_launched_run_and_taken_down(launched: Launched) -> None:
    assert launched.job["status"] == "SUCCEEDED", launched.log
    assert "trainers 1" in launched.log
    assert "generators 1" in launched.log
    assert launched.log.count("hello from") == 2


@pytest.mark.feature("S0.8")
def test_a_place_without_room_is_passed_over_for_the_next_one(launched: Launched) -> None:
    assert [attempt["infra"] for attempt in launched.attempts] == ["rig/rig/spare"]


@pytest.mark.feature("S0.6")
def test_a_stranger_is_refused_at_a_workers_port(launched: Launched) -> None:
    assert "CERTIFICATE_REQUIRED" in launched.refusal.upper() or launched.refusal == "reset"


def test_no_port_of_a_node_answers_another_user_of_the_node(launched: Launched) -> None:
    lines = [line for answers in launched.answers for line in answers]
    # The ports of both workers, and of the mesh admin's relay beside rank 0.
    assert len({line.split()[1] for line in lines}) >= 2
    assert [line for line in lines if not line.endswith(" None")] == []


@pytest.mark.feature("S3.4")
def test_the_command_beside_each_node_logs_in_there(launched: Launched) -> None:
    assert len(launched.hosts) == 2
    for found, expected in launched.hosts:
        assert expected in found.split()


def test_the_plan_shows_locations_and_prices_before_anything_starts(launched: Launched) -> None:
    places = {row["infra"]: row for row in launched.plan["candidates"]}
    assert set(places) == {"rig/rig/main", "rig/rig/spare"}
    assert [row["infra"] for row in places.values() if row["is_chosen"]] == ["rig/rig/main"]
    price = Decimal(str(places["rig/rig/spare"]["usd_per_hour"]))
    assert price == Decimal(str(launched.attempts[-1]["usd_per_hour"])) > 0


@pytest.mark.feature("S2.7")
def test_what_an_attempt_has_cost_is_what_skypilot_reports(launched: Launched) -> None:
    assert usd_of(launched.attempts[-1]) == launched.billed
    assert launched.billed > 0
