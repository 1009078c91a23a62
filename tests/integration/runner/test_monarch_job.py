"""Monarch jobs on real workers: one on each node, the driver once, TLS between all of them."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.runner.base.config import Authority
from tests.fake_ca import make_authority
from tests.runner_harness import RunnerRig

MakeRig = Callable[..., RunnerRig]
EXAMPLES = Path(__file__).parents[3] / "examples"
REFUSED = r"(?i)certificate|reset|closed|eof|decrypt error"
DRIVER = """
import os, sys, time
from mportal_runtime import meshes
from monarch.actor import Actor, endpoint, current_rank
class Probe(Actor):
    @endpoint
    def node(self):
        return int(os.environ["SKYPILOT_NODE_RANK"])
    def __cleanup__(self, error):
        print("tidied", flush=True)
def probes(mesh, count=1):
    return mesh.spawn_procs(per_host={"procs": count}).spawn("probe", Probe)
"""


def copy_example(rig: RunnerRig, name: str) -> None:
    for node in rig.config["nodes"]:
        shutil.copytree(EXAMPLES / name, rig.root(node["rank"]) / "workdir", dirs_exist_ok=True)


def assert_clean(rig: RunnerRig) -> None:
    assert rig.processes() == []
    assert rig.ingest.holes == []
    assert [rig.log(rank) for rank in rig.runners] == [""] * len(rig.runners)


@pytest.mark.feature("S0.3")
def test_the_first_example_runs_over_tls_and_every_step_is_reported(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"trainers": 2}, tls=make_authority())
    copy_example(rig, "hello_mesh")
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("COMPLETED", 0)
    assert "all sums are right" in rig.ingest.texts("stdout", 0)
    assert len([text for text in rig.ingest.texts("stdout", 1) if "my part is" in text]) == 6
    stages = [(frame["stage"], frame["phase"]) for frame in rig.ingest.of_kind("stage")]
    assert stages == [
        (stage, phase)
        for stage in ("setup", "workers", "run", "teardown")
        for phase in ("begin", "end")
    ]
    for rank in range(2):
        frames = rig.ingest.of_kind("worker", rank)
        assert [frame["status"] for frame in frames] == [
            "SETTING_UP",
            "READY",
            "RUNNING",
            "EXITED",
        ]
        assert frames[1]["address"] == f"{rig.config['nodes'][rank]['address']}:22222"
        assert frames[1]["mesh"] == "trainers"
        # The driver has shut it down; none, if it had not quite ended when the attempt did.
        assert frames[3]["exit_code"] in {0, None}
        assert frames[1]["python"].startswith("3.")
    assert_clean(rig)


@pytest.mark.feature("S0.2")
def test_each_mesh_spawns_processes_on_its_own_hosts_only(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=3, run="python train.py", meshes={"trainers": 2, "generators": 1})
    driver = """
for name in meshes:
    nodes = probes(meshes[name], 2).node.call().get(timeout=60).values()
    print(name, sorted(nodes), meshes[name] is getattr(meshes, name))
"""
    rig.write("train.py", DRIVER + driver)
    assert rig.run()["reason"] == "COMPLETED"
    said = [text for text in rig.ingest.texts("stdout", 0) if text != "tidied"]
    assert said == ["trainers [0, 0, 1, 1] True", "generators [2, 2] True"]
    meshes = {frame["rank"]: frame["mesh"] for frame in rig.ingest.of_kind("worker")}
    assert meshes == {0: "trainers", 1: "trainers", 2: "generators"}
    # At the driver's end every actor could clean up, on every node.
    assert [rig.ingest.texts("stdout", rank).count("tidied") for rank in range(3)] == [2, 2, 2]
    assert_clean(rig)


@pytest.mark.feature("S0.3")
def test_this_host_and_this_proc_come_before_meshes_if_the_driver_likes(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"all": 2}, tls=make_authority())
    driver = """
import os
from monarch.actor import Actor, endpoint, this_host, this_proc
class Probe(Actor):
    @endpoint
    def node(self):
        return int(os.environ["SKYPILOT_NODE_RANK"])
    @endpoint
    def nodes_of(self, others):
        return sorted(others.node.call().get(timeout=60).values())
mine = this_host().spawn_procs(per_host={"procs": 2}).spawn("mine", Probe)
here = this_proc().spawn("here", Probe)
print(list(mine.node.call().get(timeout=60).values()), here.node.call_one().get(timeout=60))
from mportal_runtime import meshes
theirs = meshes.all.spawn_procs().spawn("theirs", Probe)
print(list(mine.nodes_of.call(theirs).get(timeout=60).values()))
"""
    rig.write("train.py", driver)
    assert rig.run()["reason"] == "COMPLETED"
    assert rig.ingest.texts("stdout", 0) == ["[0, 0] 0", "[[0, 1], [0, 1]]"]
    assert_clean(rig)


def test_a_driver_that_chose_unix_sockets_learns_what_to_do(make_rig: MakeRig) -> None:
    rig = make_rig(run="python train.py", meshes={"all": 1})
    rig.write(
        "train.py",
        "import os\nos.environ['HYPERACTOR_MESH_DEFAULT_TRANSPORT'] = 'unix'\n"
        "from monarch.actor import this_host\nthis_host()\n"
        "from mportal_runtime import meshes\nmeshes.all\n",
    )
    message = rig.run()["message"]
    assert "which the workers cannot reach: remove HYPERACTOR_MESH_DEFAULT_TRANSPORT" in message
    assert f"'tcp://{rig.config['nodes'][0]['address']}:0'" in message


@pytest.mark.feature("S0.2")
def test_the_example_with_two_meshes_gives_the_right_sum(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=3, run="python train.py", meshes={"trainers": 2, "generators": 1})
    copy_example(rig, "two_meshes")
    assert rig.run()["exit_code"] == 0
    assert "trainers are on nodes 0, 1" in rig.ingest.texts("stdout", 0)


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Keep each processor busy with two programs."""
    count = 2 * len(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield
    for each in busy:
        each.kill()
        each.wait()


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.feature("S0.3")
def test_monarchs_basics_work_on_two_hosts_of_a_busy_machine(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"trainers": 2}, tls=make_authority())
    copy_example(rig, "getting_started")
    rig.config["timeouts"].update(workers_s=120)
    end = rig.run(300)
    said = rig.ingest.texts("stdout", 0)
    assert end["reason"] == "COMPLETED", (end["message"], end["evidence"], said)
    assert len([text for text in said if text.endswith(": right")]) == 6
    assert not any(text.startswith("mportal: mesh") for text in rig.ingest.texts("stderr", 0))
    assert_clean(rig)


def test_several_programs_of_a_job_attach_one_after_the_other(make_rig: MakeRig) -> None:
    run = "python train.py && python train.py && python train.py 7"
    rig = make_rig(nodes=2, run=run, meshes={"trainers": 2}, tls=make_authority())
    rig.write(
        "train.py",
        DRIVER
        + "nodes = probes(meshes.trainers).node.call().get(timeout=60)\n"
        + "print('nodes', sorted(node for _, node in nodes.items()), flush=True)\n"
        + "sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)\n",
    )
    end = rig.run(120)
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", 7)
    said = [text for rank in range(2) for text in rig.ingest.texts("stdout", rank)]
    assert said.count("nodes [0, 1]") == 3
    assert said.count("tidied") == 6
    assert [each["status"] for each in rig.ingest.of_kind("worker", 1)][-1] == "EXITED"
    assert_clean(rig)


def test_meshes_that_need_a_while_to_clean_up_are_shut_down_at_once(make_rig: MakeRig) -> None:
    driver = """
import time
from monarch.actor import Actor, endpoint
from mportal_runtime import meshes
class Slow(Actor):
    @endpoint
    def begin(self):
        pass
    def __cleanup__(self, error):
        time.sleep(2)
        print("cleaned up", flush=True)
for name in meshes:
    meshes[name].spawn_procs().spawn("slow", Slow).begin.call().get(timeout=60)
"""
    rig = make_rig(nodes=3, run="python train.py", meshes={"a": 1, "b": 1, "c": 1})
    rig.write("train.py", driver)
    assert rig.run()["reason"] == "COMPLETED"
    assert not any(text.startswith("mportal: mesh") for text in rig.ingest.texts("stderr", 0))
    # One after the other they would need longer than a driver's exit waits for them.
    said = [text for rank in range(3) for text in rig.ingest.texts("stdout", rank)]
    assert len([text for text in said if "cleaned up" in text]) == 3


@pytest.mark.feature("S3.3")
def test_the_driver_runs_on_the_head_only(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="echo driver on $SKYPILOT_NODE_RANK; pwd", meshes={"all": 2})
    assert rig.run()["reason"] == "COMPLETED"
    said = [(frame["rank"], frame["text"]) for frame in rig.ingest.of_kind("line")]
    assert [each for each in said if "driver on" in each[1]] == [(0, "driver on 0")]
    assert (0, str(rig.root(0) / "workdir")) in said


def test_modules_beside_the_driver_can_be_imported_on_every_node(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"all": 2})
    actor = DRIVER.partition("def probes")[0]
    rig.write("actors.py", actor)
    rig.write(
        "train.py",
        "from actors import Probe, meshes\n"
        "probes = meshes.all.spawn_procs().spawn('probe', Probe)\n"
        "print(sorted(probes.node.call().get(timeout=60).values()))\n",
    )
    assert rig.run()["reason"] == "COMPLETED"
    assert "[0, 1]" in rig.ingest.texts("stdout", 0)


def test_a_driver_may_shut_its_hosts_down_itself(make_rig: MakeRig) -> None:
    rig = make_rig(run="python train.py", meshes={"all": 1})
    rig.write(
        "train.py", DRIVER + "meshes.all.shutdown().get(timeout=20); time.sleep(0.5); print('on')"
    )
    assert rig.run()["reason"] == "COMPLETED"
    assert "on" in rig.ingest.texts()
    assert rig.ingest.texts("stderr", 0) == [
        text for text in rig.ingest.texts("stderr", 0) if "mportal" not in text
    ]


def test_with_tls_a_connection_without_the_attempts_certificate_is_refused(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    rig = make_rig(run="echo up; sleep 60", meshes={"all": 1}, tls=make_authority())
    rig.start()
    rig.ingest.wait_for(lambda: "up" in rig.ingest.texts())
    address = (rig.config["nodes"][0]["address"], 22222)
    with socket.create_connection(address, 5) as plain:
        plain.settimeout(10)
        plain.sendall(b"hello, worker\n")
        assert b"hello" not in _answer(plain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with pytest.raises(OSError, match=REFUSED):
        _say_hello(context.wrap_socket(socket.create_connection(address, 5)))
    mint_leaf(Authority(*make_authority().values()), ["127.0.0.1"], tmp_path, sys.executable)
    context.load_cert_chain(tmp_path / "leaf.crt", tmp_path / "leaf.key")
    # Of another attempt.
    with pytest.raises(OSError, match=REFUSED):
        _say_hello(context.wrap_socket(socket.create_connection(address, 5)))
    assert rig.runners[0].poll() is None
    # The authority's key does not stay on the node in a file of its own.
    names = {path.name for path in (rig.root() / "state" / "tls").iterdir()}
    assert names == {"leaf.crt", "leaf.key", "ca.crt"}


def _answer(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100)
    except OSError:
        return b""


def _say_hello(connection: socket.socket) -> None:
    with connection:
        connection.sendall(b"hello, worker\n")
        if not connection.recv(100):
            raise ConnectionResetError("closed")
