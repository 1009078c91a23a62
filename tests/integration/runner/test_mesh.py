"""Rank 0's reports on hosts, procs and actors of real drivers and workers of Monarch."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fake_ca import make_authority
from tests.runner_harness import RunnerRig, wait_until

# Each waits for Monarch, on a machine that may be slow.
pytestmark = pytest.mark.timeout(400)

DRIVER = """
import json, os, pathlib, time
from mportal_runtime import meshes
from monarch.actor import Actor, endpoint
class Probe(Actor):
    @endpoint
    def pid(self):
        print("I am", os.getpid(), flush=True)
        return os.getpid()
    @endpoint
    def fail(self):
        raise SystemExit(3)
def wait(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.05)
"""
# It waits without a call to Monarch, and goes on whatever Monarch reports.
IDLE = """
import monarch.actor
monarch.actor.unhandled_fault_hook = lambda failure: None
hosts = {name: meshes[name] for name in meshes}
probes = {name: hosts[name].spawn_procs(per_host={"procs": 2}).spawn("probe", Probe)
          for name in meshes}
pids = {name: sorted(each.pid.call().get(timeout=120).values()) for name, each in probes.items()}
pathlib.Path("pids.json.new").write_text(json.dumps(pids))
os.replace("pids.json.new", "pids.json")
wait("done")
"""


def states(tree: dict[str, Any]) -> dict[int, list[str]]:
    """Return the states of a job's procs by rank."""
    return {
        host["rank"]: sorted(proc["state"] for proc in host["procs"])
        for host in tree["hosts"]
        if host["rank"] is not None
    }


def latest(rig: RunnerRig) -> dict[str, Any]:
    return rig.ingest.trees[-1] if rig.ingest.trees else {"hosts": []}


def pids_of(rig: RunnerRig) -> dict[str, list[int]]:
    file = rig.root() / "workdir" / "pids.json"
    wait_until(file.exists, 120)
    found: dict[str, list[int]] = json.loads(file.read_text())
    return found


def actors_of(tree: dict[str, Any], rank: int) -> set[str]:
    """Return the names of the actors in the procs of a rank."""
    procs = [proc for host in tree["hosts"] if host["rank"] == rank for proc in host["procs"]]
    return {actor["id"].partition("<")[0] for proc in procs for actor in proc["actors"]}


def reason_of(rig: RunnerRig) -> str:
    """Wait for the end of the attempt; return its stop reason."""
    rig.ingest.wait_for(lambda: rig.ingest.of_kind("end"), 120)
    rig.wait(60)
    return str(rig.ingest.end["reason"])


def complaints(rig: RunnerRig) -> list[str]:
    """Return the driver's stderr without Monarch's greeting, which may come in pieces."""
    words = ("mportal:", "Traceback", "Error", "Exception", "FATAL")
    said = rig.ingest.texts("stderr", 0)
    return [text for text in said if any(word in text for word in words)]


@pytest.mark.feature("P4.2")
def test_a_killed_proc_is_reported_while_the_driver_waits(make_rig) -> None:
    rig = make_rig(
        nodes=2, run="python train.py", meshes={"trainers": 1, "others": 1}, tls=make_authority()
    )
    rig.write("train.py", DRIVER + IDLE)
    rig.start()
    alive = {0: ["alive"] * 2, 1: ["alive"] * 2}
    rig.ingest.wait_for(
        lambda: states(latest(rig)) == alive and actors_of(latest(rig), 1) == {"probe"}, 180
    )

    os.kill(pids_of(rig)["others"][0], signal.SIGKILL)
    rig.ingest.wait_for(lambda: states(latest(rig)).get(1) == ["alive", "dead"], 60)
    assert states(latest(rig))[0] == ["alive"] * 2

    def losses() -> list[str]:
        said = [text for text in rig.ingest.texts("portal") if "is dead" in text]
        return [text for text in said if "of rank 1" in text]

    # A tree has no number, and may be quicker than a line.
    rig.ingest.wait_for(losses, 60)
    assert "404 not_found" in losses()[0]

    # What Monarch prints when it begins to be asked is nothing to the user.
    assert [text for text in rig.ingest.texts("stdout", 0) if "I am" not in text] == []
    rig.write("done", "")
    assert reason_of(rig) == "COMPLETED"
    # The end of the meshes was not reported as a loss.
    assert [text for text in rig.ingest.texts("portal") if "is unreachable" in text] == []


def test_no_port_of_a_job_answers_a_client_without_a_certificate(make_rig) -> None:
    rig = make_rig(run="python train.py", meshes={"trainers": 1}, tls=make_authority())
    rig.write("train.py", DRIVER + IDLE)
    rig.start()
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"] * 2}, 180)
    (admin,) = admins(rig)
    addresses = {pid: listening_addresses(pid) for pid in rig.processes()}
    # Monarch's own server and the relay in front of it.
    assert len(addresses[admin]) >= 2
    answers = {
        address: answer_to_a_stranger(address) for each in addresses.values() for address in each
    }
    assert set(answers.values()) == {b""}, answers
    rig.write("done", "")
    assert reason_of(rig) == "COMPLETED"


def listening_addresses(pid: int) -> set[tuple[str, int]]:
    """Return the IPv4 addresses and ports at which a process listens."""
    links = {str(each.readlink()) for each in Path("/proc", str(pid), "fd").iterdir()}
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    local = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in links]
    return {(address_of(each[:8]), int(each[9:], 16)) for each in local}


def address_of(text: str) -> str:
    """Return the address that the kernel shows as `text`, in the machine's order of bytes."""
    return socket.inet_ntoa(int(text, 16).to_bytes(4, sys.byteorder))


def answer_to_a_stranger(address: tuple[str, int]) -> bytes:
    """Send an HTTP request over TLS without a certificate; return what comes back."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        suppress(OSError),
        socket.create_connection(address, 3) as plain,
        context.wrap_socket(plain) as stranger,
    ):
        stranger.sendall(b"GET /v1/root HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return stranger.recv(1000)
    return b""


@pytest.mark.feature("P4.2")
def test_a_stopped_proc_is_silent_until_it_answers_and_dead_only_when_it_has_exited(
    make_rig,
) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"trainers": 1, "others": 1})
    rig.write("train.py", DRIVER + IDLE)
    rig.start()
    alive = {0: ["alive"] * 2, 1: ["alive"] * 2}
    rig.ingest.wait_for(lambda: states(latest(rig)) == alive, 180)
    stopped = pids_of(rig)["others"][0]

    os.kill(stopped, signal.SIGSTOP)
    rig.ingest.wait_for(lambda: states(latest(rig)).get(1) == ["alive", "silent"], 60)
    os.kill(stopped, signal.SIGCONT)
    rig.ingest.wait_for(lambda: states(latest(rig)) == alive, 60)
    assert [text for text in rig.ingest.texts("portal") if "is dead" in text] == []

    os.kill(stopped, signal.SIGSTOP)
    rig.ingest.wait_for(lambda: states(latest(rig)).get(1) == ["alive", "silent"], 60)
    os.kill(stopped, signal.SIGKILL)
    rig.ingest.wait_for(lambda: states(latest(rig)).get(1) == ["alive", "dead"], 60)
    rig.write("done", "")
    assert reason_of(rig) == "COMPLETED"


@pytest.mark.feature("P4.2")
def test_a_driver_that_monarch_ends_for_a_lost_proc_leaves_it_reported_as_dead(make_rig) -> None:
    rig = make_rig(run="python train.py", meshes={"trainers": 1})
    # Like most drivers: a fault for which Monarch finds no handler interrupts it. What it does
    # then takes a while.
    idle = IDLE.replace("monarch.actor.unhandled_fault_hook", "hook")
    waiting = 'try:\n    wait("done")\nfinally:\n    wait("seen")\n'
    rig.write("train.py", DRIVER + idle.replace('wait("done")', waiting))
    rig.start()
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"] * 2}, 180)
    os.kill(pids_of(rig)["trainers"][0], signal.SIGKILL)
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive", "dead"]}, 120)
    rig.write("seen", "")
    assert reason_of(rig) == "USER_CODE"
    assert "of rank 0" in rig.ingest.end["message"]
    assert "was ended by SIGKILL" in rig.ingest.end["message"]
    assert states(latest(rig)) == {0: ["alive", "dead"]}
    assert latest(rig)["answers"]


def test_hosts_that_the_driver_has_shut_down_are_no_loss(make_rig) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"trainers": 1, "others": 1})
    waiting = 'meshes.others.shutdown().get(timeout=60)\nopen("shut", "w").close()\nwait("done")\n'
    rig.write("train.py", DRIVER + IDLE.replace('wait("done")', 'wait("go")') + waiting)
    rig.start()
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"] * 2, 1: ["alive"] * 2}, 180)
    rig.write("go", "")

    def hosts() -> dict[int, str]:
        return {host["rank"]: host["state"] for host in latest(rig)["hosts"]}

    rig.ingest.wait_for(lambda: hosts() == {0: "up", 1: "ended"}, 120)
    rig.write("done", "")
    assert reason_of(rig) == "COMPLETED"
    said = [text for text in rig.ingest.texts("portal") if "is unreachable" in text]
    assert [text for text in said if "of rank 1" in text] == []


def test_a_driver_that_wants_no_admin_is_not_watched(make_rig) -> None:
    rig = make_rig(run="MPORTAL_MESH_ADMIN=0 python train.py", meshes={"trainers": 1})
    no_file = 'assert not os.path.exists(os.environ["MPORTAL_WATCH_FILE"])\n'
    rig.write("train.py", DRIVER + IDLE + no_file)
    rig.write("done", "")
    assert rig.run(180)["reason"] == "COMPLETED"
    assert rig.ingest.trees == []


def test_a_mesh_shows_whenever_it_is_requested_without_an_attached_client(make_rig) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"trainers": 1, "others": 1})
    idle = """
trainers = meshes.trainers.spawn_procs(per_host={"procs": 1})
wait("go")
print(list(vars(meshes)["_attached"]))
others = meshes.others.spawn_procs(per_host={"procs": 1})
wait("done")
"""
    rig.write("train.py", DRIVER + idle)
    rig.start()
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"], 1: []}, 180)
    rig.write("go", "")
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"], 1: ["alive"]}, 60)
    rig.write("done", "")
    assert reason_of(rig) == "COMPLETED"
    assert rig.ingest.texts("stdout", 0) == ["['trainers']"]


def test_a_driver_that_cannot_say_that_it_has_meshes_has_them(make_rig) -> None:
    rig = make_rig(run="MPORTAL_WATCH_FILE=/nowhere/watch python train.py", meshes={"trainers": 1})
    rig.write("train.py", DRIVER + "print(type(meshes.trainers).__name__)\n")
    assert rig.run(120)["reason"] == "COMPLETED"
    assert rig.ingest.texts("stdout", 0) == ["HostMesh"]
    assert complaints(rig) == []


def admins(rig: RunnerRig) -> list[int]:
    """Return the processes that run a mesh admin."""
    return [pid for pid in rig.processes(0) if "serve_mesh_admin" in command_of(pid)]


def command_of(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_text()
    except OSError:
        return ""


def test_an_admin_that_is_killed_is_started_again_and_is_nothing_to_the_driver(make_rig) -> None:
    rig = make_rig(run="python train.py", meshes={"trainers": 1})
    rig.write("train.py", DRIVER + IDLE)
    rig.start()
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"] * 2}, 180)
    (first,) = admins(rig)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: admins(rig) not in ([], [first]), 60)
    os.kill(pids_of(rig)["trainers"][0], signal.SIGKILL)
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive", "dead"]}, 60)
    rig.write("done", "")
    assert reason_of(rig) == "COMPLETED"


# The folder in which the runner records the mesh admins, beside the driver's watch file.
STATE = 'state = pathlib.Path(os.environ["MPORTAL_WATCH_FILE"]).parent\n'
HAS_ADMIN = 'while not (state / "admins.json").exists():\n    time.sleep(0.01)\n'
STARTING = """
def is_admin(folder):
    try:
        return "serve_mesh_admin" in (folder / "cmdline").read_text()
    except OSError:
        return False
while not any(map(is_admin, pathlib.Path("/proc").glob("[0-9]*"))):
    time.sleep(0.001)
"""
ENDS = {
    "with what its end needs gone": (
        f"{HAS_ADMIN}os.remove(state / 'watch')\nos.mkdir(state / 'watch')\nos.environ.clear()\n",
        0,
    ),
    "while the admin is being started": (STARTING, 0),
    "before it is": ("raise SystemExit(0)\n", 0),
    "with a code": (f"{HAS_ADMIN}raise SystemExit(3)\n", 3),
    "by an exception": (f"{HAS_ADMIN}raise ValueError('no')\n", 1),
    "at once": (f"{HAS_ADMIN}os._exit(4)\n", 4),
    "with its hosts shut down": (f"{HAS_ADMIN}meshes.trainers.shutdown().get(timeout=60)\n", 0),
    "with its procs stopped": (
        f"{HAS_ADMIN}hosts = meshes.trainers\nhosts.spawn_procs().stop().get(timeout=60)\n",
        0,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_driver_ends_as_it_wants_in_whatever_state_the_admin_is(make_rig, end: str) -> None:
    last_words, code = ENDS[end]
    rig = make_rig(run="python train.py", meshes={"trainers": 1})
    rig.write("train.py", DRIVER + STATE + "meshes.trainers\n" + last_words)
    ended = rig.run(120)
    assert ended["exit_code"] == code
    assert ended["reason"] == ("USER_CODE" if code else "COMPLETED")
    assert not any("FATAL" in text or "mportal:" in text for text in complaints(rig))
    if not code:
        assert complaints(rig) == []
