"""The ends of processes: of tasks, of a context, and of its driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monarch_client.context import JobContext, TaskOptions
from monarch_client.context.errors import ContextClosedError, ObjectLostError, TaskLostError
from tests.waiting import eventually

DRIVER = """
import os, sys, time
from monarch_client.context import JobContext
context = JobContext(resources={"CPU": 2})
def sleep():
    import subprocess
    child = subprocess.Popen(["sleep", "600"])
    open(sys.argv[1] + f"/{child.pid}", "w").close()
    open(sys.argv[1] + f"/{os.getpid()}", "w").close()
    time.sleep(600)
class Actor:
    def pid(self):
        return os.getpid()
refs = [context.create_task(sleep) for _ in range(2)]
actor = context.create_actor(Actor)
open(sys.argv[1] + f"/{context.get(actor.pid())}", "w").close()
open(sys.argv[1] + f"/{context._driver.hosts.link.pid}", "w").close()
time.sleep(600)
"""


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_task_is_tried_again_when_its_process_dies(context: JobContext, tmp_path: Path) -> None:
    tries = tmp_path / "tries"

    def die_twice():
        import os

        with tries.open("a") as file:
            file.write("x")
        if len(tries.read_text()) < 3:
            os.kill(os.getpid(), 9)
        return "survived"

    assert context.get(context.create_task(die_twice), timeout=60) == "survived"


def test_a_task_that_kills_every_process_is_lost(context: JobContext) -> None:
    options = TaskOptions(max_retries=1)
    ref = context.create_task(lambda: os._exit(7), options=options)
    with pytest.raises(TaskLostError, match=r"exited with status 7, on each of 2 tries"):
        context.get(ref, timeout=60)


def test_an_error_of_the_task_is_never_retried(context: JobContext, tmp_path: Path) -> None:
    tries = tmp_path / "tries"

    def fail():
        with tries.open("a") as file:
            file.write("x")
        raise ValueError

    with pytest.raises(ValueError):
        context.get(context.create_task(fail))
    assert tries.read_text() == "x"


def test_the_death_of_a_process_is_known_at_once(context: JobContext) -> None:
    options = TaskOptions(max_retries=0)

    def die():
        os.kill(os.getpid(), 9)

    waits = []
    for _ in range(3):
        started = time.monotonic()
        with pytest.raises(TaskLostError, match="SIGKILL"):
            context.get(context.create_task(die, options=options), timeout=60)
        waits.append(time.monotonic() - started)
    assert min(waits) < 0.5


def test_after_the_end_of_the_zygote_everything_goes_on(context: JobContext) -> None:
    slow = context.create_task(lambda: time.sleep(0.2) or "again")
    os.kill(context._driver.hosts.link.pid, 9)
    assert context.get(slow, timeout=60) == "again"
    assert context.get(context.create_task(lambda: 1), timeout=60) == 1


@pytest.mark.slow
def test_a_closed_context_ends_its_processes_and_what_waits_for_them() -> None:
    with JobContext(resources={"CPU": 2}) as context:
        pid = context.get(context.create_task(os.getpid))
        pending = context.create_task(time.sleep, (600,))
    with pytest.raises(ContextClosedError):
        context.get(pending)
    with pytest.raises(ContextClosedError):
        context.create_task(int)
    with pytest.raises(ContextClosedError):
        context.put(1)
    assert eventually(lambda: not exists(pid))
    context.close()


def test_objects_are_forgotten_with_their_last_reference(context: JobContext) -> None:
    def objects():
        context.get(context.put(None))
        return len(context._driver.objects)

    before = objects()
    refs = [context.put([context.put(n)]) for n in range(50)]
    refs += [context.create_task(lambda inner: [inner], ([ref],)) for ref in refs]
    context.get(refs)
    assert objects() >= before + 150
    del refs
    assert eventually(lambda: objects() <= before + 1)


def test_a_reference_of_another_context_is_refused(context: JobContext) -> None:
    with JobContext(resources={"CPU": 1}) as other:
        ref = other.put(1)
        with pytest.raises(ObjectLostError, match="another context"):
            context.create_task(int, (ref,))
        with pytest.raises(ObjectLostError):
            context.get(ref)


@pytest.mark.slow
def test_nothing_stays_after_a_kill_of_the_driver(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)], env=environment)
    try:
        assert eventually(lambda: len(list(tmp_path.iterdir())) >= 6, timeout_s=60)
        pids = [int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()]
        # Two tasks, their two children, the actor and the zygote.
        assert len(pids) == 6
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        assert eventually(lambda: not any(map(exists, pids)), timeout_s=10)
        assert len(list(tmp_path.iterdir())) == len(pids)
    finally:
        driver.kill()
        driver.wait()
