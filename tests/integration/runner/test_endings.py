"""Failed attempts: each has its stop reason, its message and its evidence."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runner.test_monarch_job import assert_clean
from tests.runner_harness import RunnerRig

MakeRig = Callable[..., RunnerRig]
DRIVER = """
import os, signal, sys, time
from mportal_runtime import meshes
from monarch.actor import Actor, endpoint
class Probe(Actor):
    @endpoint
    def fail(self):
        raise ValueError("bad number 7")
    @endpoint
    def vanish(self):
        os._exit(3)
    @endpoint
    def crash(self):
        os.kill(os.getpid(), signal.SIGSEGV)
    @endpoint
    def wait(self):
        print("waiting", flush=True)
        time.sleep(60)
class Broken(Actor):
    def __init__(self):
        raise ValueError("bad start")
    @endpoint
    def wait(self):
        pass
procs = meshes.all.spawn_procs(per_host={"procs": 1})
probe = procs.spawn("probe", Probe)
"""
# Takes the place of the workers' interpreter: `python worker.py ADDRESS FACTS`.
STAND_IN = """#!{python}
import socket, sys, time
address, facts = sys.argv[2:]
{body}
host, port = address.rpartition("//")[2].split(":")
server = socket.create_server((host, int(port)))
time.sleep(60)
"""


def monarch_rig(make_rig: MakeRig, driver: str, nodes: int = 1, **settings: Any) -> RunnerRig:
    rig = make_rig(nodes=nodes, run="python train.py", meshes={"all": nodes}, **settings)
    rig.write("train.py", DRIVER + driver)
    return rig


def stand_in(folder: Path, body: str) -> str:
    path = folder / "stand-in"
    path.write_text(STAND_IN.format(python=sys.executable, body=body))
    path.chmod(0o755)
    return str(path)


@pytest.mark.feature("S0.4")
@pytest.mark.parametrize(
    ("body", "why", "evidence", "hint"),
    [
        ("time.sleep(60)", "no connection within 1 s", "", "last lines"),
        ("import monarch_is_not_here", "exit code 1", "ModuleNotFoundError", "lacks"),
        ("raise ImportError(\"No module named 'monarch'\")", "code 1", "monarch", "torchmonarch"),
        ("import os, signal; os.kill(os.getpid(), 11)", "SIGSEGV", "", "last lines"),
    ],
)
def test_a_worker_that_never_listens_is_named_with_host_port_and_evidence(
    make_rig: MakeRig, tmp_path: Path, body: str, why: str, evidence: str, hint: str
) -> None:
    rig = monarch_rig(
        make_rig,
        "",
        nodes=2,
        python=stand_in(tmp_path, body),
        timeouts={"workers_s": 1, "grace_s": 1},
    )
    started = time.monotonic()
    end = rig.run()
    assert time.monotonic() - started < 8
    assert end["reason"] == "WORKER_NEVER_READY"
    assert any(node["address"] in end["message"] for node in rig.config["nodes"])
    assert "port 22222" in end["message"]
    assert why in end["message"]
    assert evidence in end["evidence"]
    assert hint in end["hint"]
    assert_clean(rig)


@pytest.mark.feature("S0.4")
def test_a_port_that_is_taken_is_said_so(make_rig: MakeRig) -> None:
    rig = monarch_rig(make_rig, "")
    address = rig.config["nodes"][0]["address"]
    with socket.create_server((address, 0)) as other:
        rig.config["port"] = other.getsockname()[1]
        end = rig.run()
    assert end["reason"] == "WORKER_NEVER_READY"
    assert "portal.port" in end["hint"]


def test_an_interpreter_that_is_not_there_is_said_so(make_rig: MakeRig) -> None:
    end = monarch_rig(make_rig, "", python="/no/such/python").run()
    assert end["reason"] == "WORKER_NEVER_READY"
    assert "/no/such/python" in end["message"]


@pytest.mark.parametrize(
    ("driver", "error", "place"),
    [
        ("raise KeyError('no such key')", "KeyError: 'no such key'", "train.py:"),
        ("probe.fail.call().get(timeout=20)", "ValueError: bad number 7 (in probe.fail)", "py:8"),
        ("procs.spawn('b', Broken).wait.call().get(timeout=20)", "ValueError: bad start", "py:21"),
        ("probe.fail.broadcast(); time.sleep(60)", "ValueError: bad number 7", "py:8"),
        ("meshes.trainers", "UnknownMeshError", "has: all"),
    ],
)
def test_an_error_of_the_users_is_reported_with_its_type_message_and_place(
    make_rig: MakeRig, driver: str, error: str, place: str
) -> None:
    rig = monarch_rig(make_rig, driver)
    end = rig.run()
    assert end["reason"] == "USER_CODE"
    assert error in end["message"]
    assert place in end["message"]
    assert "Traceback" in end["evidence"]
    assert_clean(rig)


@pytest.mark.parametrize("code", [1, 3, 77])
def test_the_drivers_own_exit_code_is_kept(make_rig: MakeRig, code: int) -> None:
    rig = monarch_rig(make_rig, f"sys.exit({code})")
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", code)
    assert [frame["exit_code"] for frame in rig.ingest.of_kind("exit")] == [code]


@pytest.mark.parametrize(
    ("number", "words"),
    # The shell of `run` stays above the driver, and reports its signal as an exit code.
    [(signal.SIGKILL, "exit code 137, as after SIGKILL"), (signal.SIGSEGV, "SIGSEGV")],
)
def test_a_driver_that_is_killed_is_distinguished_from_one_that_raises(
    make_rig: MakeRig, number: int, words: str
) -> None:
    rig = monarch_rig(make_rig, f"os.kill(os.getpid(), {int(number)}); time.sleep(60)")
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", 128 + number)
    assert words in end["message"]
    (exit_frame,) = rig.ingest.of_kind("exit")
    assert exit_frame["signal"] == number
    assert_clean(rig)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_that_is_killed_ends_the_attempt_at_once(make_rig: MakeRig, rank: int) -> None:
    rig = monarch_rig(make_rig, "probe.wait.call().get()", nodes=2)
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts().count("waiting") == 2)
    ready = [f for f in rig.ingest.of_kind("worker", rank) if f["status"] == "READY"]
    killed = time.time()
    os.kill(ready[0]["pid"], signal.SIGKILL)
    end = rig.ingest.end
    rig.wait()
    assert end["t"] - killed < 3
    assert end["reason"] == "WORKER_LOST"
    assert f"rank {rank} " in end["message"]
    assert "SIGKILL" in end["evidence"]
    assert end["crash"] == f"worker of rank {rank}: exit code 137 (stage run)"
    assert [f["status"] for f in rig.ingest.of_kind("worker", rank)][-1] == "LOST"
    assert_clean(rig)


@pytest.mark.parametrize("driver", ["probe.vanish.call().get()", "probe.vanish.broadcast()"])
def test_a_process_of_a_mesh_that_exits_is_the_programs(make_rig: MakeRig, driver: str) -> None:
    end = monarch_rig(make_rig, f"{driver}\ntime.sleep(60)").run()
    assert end["reason"] == "USER_CODE"
    assert "A process of the meshes of rank 0" in end["message"]
    assert "returned exit code 3" in end["message"]


@pytest.mark.parametrize("call", ["call_one().get()", "broadcast()"])
def test_a_process_of_a_mesh_that_crashes_is_the_programs_and_has_its_rank(
    make_rig: MakeRig, call: str
) -> None:
    driver = f"probe.slice(hosts=1).crash.{call}\ntime.sleep(60)"
    end = monarch_rig(make_rig, driver, nodes=2).run()
    assert end["reason"] == "USER_CODE"
    assert "A process of the meshes of rank 1" in end["message"]
    assert "was ended by SIGSEGV" in end["message"]


STOPPED = """
class Sleeper(Actor):
    @endpoint
    def pid(self):
        return os.getpid()
pid = procs.spawn("sleeper", Sleeper).pid.call_one().get(timeout=60)
os.kill(pid, signal.SIGSTOP)
time.sleep({seconds})
os.kill(pid, signal.SIGCONT)
"""


@pytest.mark.feature("S0.4")
def test_a_process_that_is_stopped_for_a_while_ends_nothing(make_rig: MakeRig) -> None:
    end = monarch_rig(make_rig, STOPPED.format(seconds=10)).run()
    assert end["reason"] == "COMPLETED"


def test_a_process_that_is_silent_for_longer_than_the_users_limit_is_reported_with_it(
    make_rig: MakeRig,
) -> None:
    name = "HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE"
    rig = monarch_rig(make_rig, STOPPED.format(seconds=60), envs={name: "2s"})
    end = rig.run()
    assert end["reason"] == "WORKER_LOST"
    assert "of rank 0" in end["message"]
    assert f"was silent for 2s, so Monarch gave it up ({name})." in end["message"]
    assert end["crash"] == f"silence of rank 0: {name} (stage run)"


def test_an_error_in_an_actor_that_is_never_awaited_has_its_traceback_in_the_log(
    make_rig: MakeRig,
) -> None:
    rig = monarch_rig(make_rig, "probe.fail.broadcast(); time.sleep(60)")
    rig.run()
    said = "\n".join(rig.ingest.texts("stderr", 0))
    assert "Monarch reported a fault:" in said
    assert 'raise ValueError("bad number 7")' in said


def test_a_fault_without_an_error_of_the_user_is_monarchs(make_rig: MakeRig) -> None:
    driver = """
from monarch._rust_bindings.monarch_hyperactor.supervision import SupervisionError
raise SupervisionError("the mesh controller does not answer")
"""
    end = monarch_rig(make_rig, driver).run()
    assert end["reason"] == "MONARCH"
    assert "the mesh controller does not answer" in end["message"]


def test_another_python_than_the_workers_is_found_before_anything_crashes(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    python = stand_in(tmp_path, "open(facts, 'w').write('{\"python\": \"2.7\"}')")
    rig = monarch_rig(make_rig, "", python=python)
    end = rig.run()
    mine = "{}.{}".format(*sys.version_info[:2])
    assert end["reason"] == "PYTHON_MISMATCH"
    assert end["message"] == f"The driver runs Python {mine}, but the workers run 2.7."
    assert_clean(rig)


def test_a_driver_that_ignores_the_meshes_ends_as_a_program_does(make_rig: MakeRig) -> None:
    rig = make_rig(run="echo hi; exit 4", meshes={"all": 1})
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", 4)
    assert end["evidence"] == "hi"


def test_a_cancelled_driver_leaves_no_process_of_its_meshes(make_rig: MakeRig) -> None:
    rig = monarch_rig(make_rig, "probe.wait.call().get()", nodes=2)
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts().count("waiting") == 2)
    assert len(rig.processes()) >= 5
    rig.stop_rank(0)
    rig.wait()
    assert rig.ingest.end["reason"] == "CANCELLED_BY_USER"
    assert_clean(rig)
