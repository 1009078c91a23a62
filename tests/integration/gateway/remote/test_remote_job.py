"""RemoteJob in users' programs: workers that already run, by address and by label selector."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes_api import KubernetesApi, pod
from tests.monarch_workers import PORT, MonarchWorkers
from tests.programs import RunProgram

pytestmark = pytest.mark.feature("S1.6")
PRELUDE = """\
import os, sys
from monarch.actor import Actor, endpoint
from monarch_client.attaching.errors import *
from monarch_client.gateway import RemoteJob

class Host(Actor):
    @endpoint
    def rank(self):
        return os.environ["SKYPILOT_NODE_RANK"]

def ranks(mesh):
    actors = mesh.spawn_procs(per_host={"procs": 1}).spawn("host", Host)
    return sorted(value for _, value in actors.rank.call().get(timeout=60).items())

def say(*words):
    print("said:", *words, flush=True)

"""
# A stand-in for kubectl: it takes the pod's port on to the first worker.
KUBECTL = """#!{python} -IS
import socket, sys, threading
words = sys.argv[1:]
assert words[:4] == ["port-forward", "--namespace", "research", "pod/w-0"], words
here, there = words[4].split(":")

def carry(source, target):
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)

with socket.create_server(("127.0.0.1", int(here))) as listener:
    print(f"Forwarding from 127.0.0.1:{{here}} -> {{there}}", flush=True)
    while True:
        client = listener.accept()[0]
        worker = socket.create_connection(("{host}", int(there)))
        for pair in ((client, worker), (worker, client)):
            threading.Thread(target=carry, args=pair, daemon=True).start()
"""


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[MonarchWorkers]:
    """Provide two workers as in Monarch's own examples."""
    workers = MonarchWorkers(tmp_path, 2, tls=False)
    yield workers
    workers.close()


@pytest.fixture
def api(tmp_path: Path, plain: MonarchWorkers) -> Iterator[KubernetesApi]:
    """Serve the plain workers as the pods of an application."""
    api = KubernetesApi(tmp_path)
    api.pods = [pod(f"w-{rank}", host) for rank, host in enumerate(plain.hosts)]
    yield api
    api.close()


def test_hosts_with_certificates_are_driven_and_outlive_the_program(
    tmp_path: Path, run_program: RunProgram
) -> None:
    workers = MonarchWorkers(tmp_path, 3)
    program = (
        PRELUDE
        + """
with RemoteJob(hosts=sys.argv[2:], certificates=sys.argv[1],
               meshes={"trainers": 2, "generators": 1}) as job:
    state = job.state()
    say(ranks(state.trainers), ranks(state.generators))
    try:
        state.trainers.shutdown()
    except SharedWorkersError as error:
        say(job.name in str(error))
say("over")
"""
    )
    try:
        before = workers.pids
        for _ in range(2):
            said = run_program(program, workers.certificates, *workers.addresses)
            assert said == ["['0', '1'] ['2']", "True", "over"]
        assert workers.pids == before
    finally:
        workers.close()


def test_pods_of_a_selector_are_driven_and_outlive_the_program(
    api: KubernetesApi, plain: MonarchWorkers, run_program: RunProgram
) -> None:
    program = (
        PRELUDE
        + """
job = RemoteJob(selector={"app": "ppo"}, namespace="research")
say(ranks(job.state().workers))
job.kill()
"""
    )
    before = plain.pids
    assert run_program(program, KUBECONFIG=str(api.kubeconfig)) == ["['0', '1']"]
    assert plain.pids == before


def test_pods_that_are_not_reached_are_driven_through_kubectl(
    api: KubernetesApi, plain: MonarchWorkers, run_program: RunProgram, tmp_path: Path
) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(KUBECTL.format(python=sys.executable, host=plain.hosts[0]))
    kubectl.chmod(0o755)
    program = (
        PRELUDE
        + """
with RemoteJob(selector="app=ppo", namespace="research", reach="forward") as job:
    say(ranks(job.state().workers))
"""
    )
    path = f"{kubectl.parent}:{os.environ['PATH']}"
    assert run_program(program, KUBECONFIG=str(api.kubeconfig), PATH=path) == ["['0', '1']"]


def test_a_host_without_a_worker_is_named_before_monarch_is_used(run_program: RunProgram) -> None:
    program = (
        PRELUDE
        + f"""
try:
    RemoteJob(hosts=["127.0.0.1:{PORT - 1}"]).state()
except WorkersUnreachableError as error:
    say("127.0.0.1:{PORT - 1} does not answer" in str(error), "refused" in str(error))
"""
    )
    assert run_program(program) == ["True True"]


def test_a_worker_that_ends_ends_the_wait_for_it(
    plain: MonarchWorkers, run_program: RunProgram
) -> None:
    program = (
        PRELUDE
        + """
import signal, threading, time
from monarch_client.attaching import watch
watch.ENDED_S, watch.PROBE_EVERY_S = 1.0, 0.2

class Sleeper(Actor):
    @endpoint
    def sleep(self):
        time.sleep(1000)

job = RemoteJob(hosts=sys.argv[2:])
actors = job.state().workers.spawn_procs(per_host={"procs": 1}).spawn("sleeper", Sleeper)
actors.initialized.get(timeout=60)
os.killpg(int(sys.argv[1]), signal.SIGKILL)
try:
    actors.sleep.call().get()
except HostLostError as error:
    say(error.hosts)
job.kill()
"""
    )
    said = run_program(program, plain.pids[1], *plain.hosts)
    assert said == [f"['{plain.hosts[1]}:{PORT}']"]
