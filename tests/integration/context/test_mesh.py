"""A context on the hosts of a mesh: two real Monarch workers with mutual TLS."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monarch_workers import MonarchWorkers
from tests.programs import CHECKOUT, RunProgram, runner_in
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.monarch]

PRELUDE = """\
import os, signal, sys, time
from pathlib import Path
from monarch_client.attaching import meshes, profile
from monarch_client.context import ActorOptions, JobContext, TaskOptions, get_job_context
from monarch_client.context.errors import *
from monarch.actor import Actor, attach_to_workers, enable_transport, endpoint

def say(*words):
    print("said:", *words, flush=True)

class Counter:
    def __init__(self):
        self.n = 0

    def size(self):
        self.n += 1
        return self.n

    def host(self):
        return os.getppid()

class Adds(Actor):
    def __init__(self):
        self.n = 0

    @endpoint
    def add(self, n):
        self.n += n
        return self.n

profile.use(Path(sys.argv[1]))
enable_transport("tls://localhost:0")
hosts = meshes.meshes_of({"trainers": sys.argv[2:]})["trainers"]
context = JobContext(hosts, object_transport=os.environ.get("TRANSPORT", "auto"))
"""


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MonarchWorkers]:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    workers = MonarchWorkers(tmp_path, 2)
    yield workers
    workers.close()


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    run = runner_in(tmp_path)
    return lambda text, *arguments, **variables: run(PRELUDE + text, *arguments, **variables)


EVERYTHING = """
def busy(n):
    time.sleep(0.05)
    return n, os.getppid(), "monarch" in sys.modules
found = context.get([context.create_task(busy, (n,)) for n in range(40)], timeout=60)
say([n for n, _, _ in found] == list(range(40)), len({host for _, host, _ in found}))
say({imported for _, _, imported in found})
def nested(n):
    own = get_job_context()
    return n if n == 0 else 1 + own.get(own.create_task(nested, (n - 1,)))
say(context.get(context.create_task(nested, (6,)), timeout=60))
actors = [context.create_actor(Counter, options=ActorOptions(resources={"CPU": 2})) for _ in "ab"]
say(len(set(context.get([each.host() for each in actors]))), context.get(actors[0].size()))
del actors
text = context.put("x" * 1_000_000)
say(context.get(context.create_task(len, (text,)), timeout=60))
try:
    context.create_task(int, options=TaskOptions(resources={"CPU": 1000}))
except InfeasibleError as error:
    say(str(error).split(".")[0])
procs = hosts.spawn_procs(per_host={"gpus": 1})
adds = procs.spawn("adds", Adds)
adds.add.call(1).get(timeout=60)
def call(adds):
    return [n for _, n in adds.add.call(2).get(timeout=60)]
say(context.get(context.create_task(call, (adds,)), timeout=60))
procs.stop().get()
context.close()
say("closed")
"""


def test_tasks_and_actors_run_on_all_hosts_of_a_mesh(
    workers: MonarchWorkers, run_program: RunProgram
) -> None:
    said = run_program(EVERYTHING, workers.certificates, *workers.addresses)
    assert said == [
        "True 2",
        "{False}",
        "6",
        "2 1",
        "1000000",
        "1000 CPU was requested",
        "[3, 3]",
        "closed",
    ]


LOSS = """
folder = Path(sys.argv[1]).parent
options = ActorOptions(resources={"CPU": 2})
actors = [context.create_actor(Counter, options=options) for _ in "ab"]
places = context.get([each.host() for each in actors], timeout=60)
def run():
    (folder / f"running-{os.getpid()}").touch()
    while not (folder / "lost").exists():
        time.sleep(0.02)
    return os.getppid()
refs = [context.create_task(run, options=TaskOptions(resources={"CPU": 0})) for _ in range(6)]
while len(list(folder.glob("running-*"))) < 6:
    time.sleep(0.02)
(folder / "ready").touch()
died = 0
ended = time.monotonic() + 60
for each in actors:
    while time.monotonic() < ended:
        try:
            context.get(each.size(), timeout=60)
            if died or each is actors[0] and (folder / "killed").exists():
                break
        except ActorDiedError as error:
            say(str(error).partition(" on ")[0], "lost with its host" in str(error))
            died += 1
            break
        time.sleep(0.02)
(folder / "lost").touch()
say(died, len(set(context.get(refs, timeout=60))))
context.close()
"""


def test_tasks_of_a_lost_host_run_elsewhere_and_its_actors_have_died(
    workers: MonarchWorkers, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + LOSS)
    process = subprocess.Popen(
        [sys.executable, program, workers.certificates, *workers.addresses],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert eventually((tmp_path / "ready").exists, timeout_s=60)
        workers.end(1)
        (tmp_path / "killed").touch()
        output, _ = process.communicate(timeout=90)
        assert "said: The process of Counter True" in output, output
        assert "said: 1 1" in output, output
    finally:
        process.kill()
        process.communicate()


STALE = """
import threading
import monarch.actor
hook = monarch.actor.unhandled_fault_hook
second = JobContext(hosts)
say("one hook", monarch.actor.unhandled_fault_hook is hook)
second.close()
folder = Path(sys.argv[1]).parent
def child(n):
    (folder / f"child-{n}").touch()
def parent(folder):
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    agent = stat.rpartition(")")[2].split()[1]
    own = get_job_context()
    own.put(1)
    (folder / f"agent-{agent}").touch()
    while not (folder / f"again-{agent}").exists():
        time.sleep(0.02)
    refs = own.create_task(child, (os.getpid(),), options=TaskOptions(resources={"CPU": 0}))
    time.sleep(60)
options = TaskOptions(max_retries=0, resources={"CPU": 1})
parents = [context.create_task(parent, (folder,), options=options) for _ in range(4)]
while len(list(folder.glob("agent-*"))) < 2:
    time.sleep(0.02)
agent, last = (int(each.name[6:]) for each in folder.glob("agent-*"))
remote = context._driver.hosts._hosts
os.kill(agent, signal.SIGSTOP)
while not any(host.is_lost for host in remote.hosts):
    time.sleep(0.05)
with context._driver.loop.lock:
    objects = len(context._driver.objects)
(folder / f"again-{agent}").touch()
os.kill(agent, signal.SIGCONT)
while Path(f"/proc/{agent}").exists():
    time.sleep(0.1)
say(len(list(folder.glob("child-*"))), len(context._driver.objects) - objects)
os.kill(last, signal.SIGKILL)
while not all(host.is_lost for host in remote.hosts):
    time.sleep(0.05)
began = time.monotonic()
context.close()
names = {each.name for each in threading.enumerate()}
say(time.monotonic() - began < 5, "task context: receives" in names)
"""


def test_hosts_that_come_back_are_not_obeyed_and_a_context_without_hosts_closes_at_once(
    workers: MonarchWorkers, run_program: RunProgram
) -> None:
    said = run_program(STALE, workers.certificates, *workers.addresses)
    assert said == ["one hook True", "0 0", "True False"]


def test_nothing_stays_on_hosts_after_a_kill_of_the_driver(
    workers: MonarchWorkers, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        PRELUDE
        + """
folder = Path(sys.argv[1]).parent
def run():
    (folder / f"pid-{os.getpid()}").touch()
    time.sleep(600)
refs = [context.create_task(run, options=TaskOptions(resources={"CPU": 0.5})) for _ in range(4)]
time.sleep(600)
"""
    )
    process = subprocess.Popen(
        [sys.executable, program, workers.certificates, *workers.addresses],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    try:
        assert eventually(lambda: len(list(tmp_path.glob("pid-*"))) == 4, timeout_s=60)
        pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
        process.kill()
        process.wait()
        alive = lambda: [pid for pid in pids if Path(f"/proc/{pid}").exists()]  # noqa: E731
        assert eventually(lambda: not alive(), timeout_s=20)
    finally:
        process.kill()
        process.wait()
