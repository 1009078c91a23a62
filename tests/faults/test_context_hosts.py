"""Kills of executors, agents and hosts of a task context at random moments: all references end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.context.test_mesh import PRELUDE
from tests.monarch_workers import MonarchWorkers
from tests.programs import CHECKOUT, runner_in

pytestmark = [pytest.mark.faults, pytest.mark.monarch]

PROGRAM = """
import random, threading
from contextlib import suppress
import numpy as np

chance = random.Random(int(os.environ["SEED"]))
driver = context._driver

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
def children(pid):
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
def zygote(_):
    time.sleep(0.3)
    return os.getppid()
def make(n):
    time.sleep(0.02)
    return np.full(100_000, n % 250, np.uint8)
def join(first, second):
    return np.concatenate([first[:50_000], second[-50_000:]])
def nested(n):
    own = get_job_context()
    return join(own.get(own.create_task(make, (n,))), own.get(own.put(make(n + 1))))
class Keeps:
    def give(self, array):
        return join(array, array)

class Killer(threading.Thread):
    def run(self):
        victims = [*zygotes]
        ends = sorted(chance.uniform(0.2, 8) for _ in range(2))
        started = time.monotonic()
        # Then kills end: on one host, each task would be killed again and again.
        while time.monotonic() - started < 10 and not finished.wait(chance.uniform(0.02, 0.3)):
            if ends and time.monotonic() - started > ends[0]:
                del ends[0]
                with suppress(OSError):
                    if ends:
                        os.kill(parent(victims.pop()), signal.SIGKILL)  # an agent
                        kills.append("agent")
                    else:
                        os.killpg(int(os.environ["WORKER"]), signal.SIGKILL)
                        kills.append("host")
            executors = [each for pid in zygotes for each in children(pid)]
            if executors:
                with suppress(OSError):
                    os.kill(chance.choice(executors), signal.SIGKILL)
                    kills.append("executor")

names = [host.description.name for host in driver.hosts._hosts.hosts]
zygotes = set(context.get([context.create_task(zygote, (n,)) for n in range(12)], timeout=60))
worker = int(os.environ["WORKER"])
# The host that ends as a whole is not the one whose agent is killed.
zygotes = sorted(zygotes, key=lambda pid: os.getsid(parent(pid)) == os.getsid(worker))
zygotes.reverse()
say(len(zygotes))
kills, finished = [], threading.Event()
killer = Killer(daemon=True)
killer.start()
options = TaskOptions(max_retries=20, resources={"CPU": 0.5})
expected = {}
for n in range(120):
    made = context.create_task(make, (n,), options=options)
    joined = context.create_task(join, (made, context.put(make(n + 2))), options=options)
    actor = context.create_actor(Keeps, options=ActorOptions(name=f"keeps {n}"))
    expected |= {made: (n, n), joined: (n, n + 2), actor.give(joined): (n, n + 2)}
    if n % 10 == 0:
        expected[context.create_task(nested, (n,), options=options)] = (n, n + 1)
values, errors = 0, []
while expected:
    ref, (first, last) = expected.popitem()
    try:
        value = context.get(ref, timeout=120)
        assert (value[0], value[-1]) == (first % 250, last % 250), (value[0], value[-1], first)
        values += 1
    except (TaskLostError, ActorDiedError, ObjectLostError) as error:
        errors.append(type(error).__name__)
finished.set()
killer.join()
print(values, kills.count("executor"), {each: errors.count(each) for each in errors}, flush=True)
say(values > 120, {"agent", "host"} <= set(kills), len(driver.hosts._hosts.hosts) - sum(
    host.is_lost for host in driver.hosts._hosts.hosts))
del ref, made, joined, actor, value
ended = time.monotonic() + 30
def left():
    context.put(0)
    return (len(driver.tasks), len(driver.stored._places), len(driver.stored.lineage),
        len(driver.scheduler.allocations))
while any(left()) and time.monotonic() < ended:
    time.sleep(0.05)
say(left())
context.close()
say("closed")
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_every_reference_ends_while_hosts_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    workers = MonarchWorkers(tmp_path, 3)
    try:
        run = runner_in(tmp_path, end_s=200)
        variables = {"SEED": str(seed), "WORKER": str(workers.processes[2].pid)}
        said = run(PRELUDE + PROGRAM, workers.certificates, *workers.addresses, **variables)
    finally:
        workers.close()
    assert said == ["3", "True True 1", "(0, 0, 0, 0)", "closed"]
