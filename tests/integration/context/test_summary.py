"""Reports of a context to the runner of its job, and the names in the lines of its tasks."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from monarch_client.wire.tasks import ContextSummary
from tests.integration.context.test_mesh import PRELUDE
from tests.monarch_workers import MonarchWorkers
from tests.programs import CHECKOUT
from tests.waiting import eventually

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, time
from pathlib import Path
from monarch_client.context import ActorOptions, JobContext

def square(number):
    print(f"the square of {number}")
    print("two\\nlines", file=sys.stderr)
    if number == 7:
        raise ValueError("bad number 7")
    return number * number

class Counter:
    def add(self):
        print("one more", flush=True)
    async def wait(self):
        print("waited")

with JobContext(resources={"CPU": 2}) as context:
    refs = [context.create_task(square, (number,)) for number in range(8)]
    context.wait(refs, len(refs))
    counter = context.create_actor(Counter, options=ActorOptions(name="steps"))
    context.get([counter.add(), counter.wait()])
    large = context.put(bytes(10_000_000))
    naps = [context.create_task(time.sleep, (600,)) for _ in range(5)]
    while not Path(sys.argv[1]).exists():
        time.sleep(0.05)
    context.cancel(naps[0])
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the program as the runner of a job does."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "done")],
        env={
            "MPORTAL_TASKS_FOLDER": str(tmp_path / "tasks"),
            "MPORTAL_JOB_ID": "42",
            "PATH": "/usr/bin",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_job_reports_its_tasks_and_the_log_names_them(
    process: subprocess.Popen[str], tmp_path: Path
) -> None:
    reports = tmp_path / "tasks"

    def reported(condition: Callable[[ContextSummary], object]) -> ContextSummary:
        found: list[ContextSummary] = []

        def is_there() -> bool:
            files = list(reports.glob("*.json"))
            found[:] = [
                msgspec.json.decode(each.read_bytes(), type=ContextSummary) for each in files
            ]
            return bool(found and condition(found[0]))

        assert eventually(is_there, timeout_s=60), found
        return found[0]

    summary = reported(lambda each: any(row.running == 2 for row in each.tasks))
    rows = {row.name: row for row in summary.tasks}
    assert (rows["square"].finished, rows["square"].failed) == (7, 1)
    assert rows["square"].mean_seconds is not None
    assert (rows["sleep"].running, rows["sleep"].pending) == (2, 3)
    assert rows["Counter.add"].finished == 1
    (actor,) = summary.actors
    assert (actor.name, actor.kind, actor.state, actor.calls) == ("steps", "Counter", "alive", 2)
    (host,) = summary.hosts
    assert (host.objects, host.processes) == (1, 3)
    assert host.bytes is not None and host.bytes >= 10_000_000
    (failure,) = summary.failures
    assert (failure.name, failure.host) == ("square", host.name)
    assert 'raise ValueError("bad number 7")' in failure.trace

    (tmp_path / "done").touch()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    for number in range(8):
        assert any(
            line.startswith("(square, pid ") and line.endswith(f") the square of {number}")
            for line in output.splitlines()
        )
    assert f"(steps.add, pid {actor.pid}) one more\n" in output
    assert f"(steps.wait, pid {actor.pid}) waited\n" in output
    assert all(line.startswith("(square, pid ") for line in errors.splitlines())
    assert errors.count(") two\n") == errors.count(") lines\n") == 8

    last = reported(lambda each: not each.is_open)
    rows = {row.name: row for row in last.tasks}
    assert (rows["square"].finished, rows["sleep"].running) == (7, 0)
    assert [each.state for each in last.actors] == ["ended"]


OUTSIDE = """
import os, signal
def nap():
    time.sleep(600)
say("started")
nothing = context.create_task(nap)
while not Path("done").exists():
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.monarch
def test_an_agent_reports_a_driver_outside_of_the_job_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tasks"
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("MPORTAL_TASKS_FOLDER", str(folder))
    workers = MonarchWorkers(tmp_path, 2)
    monkeypatch.delenv("MPORTAL_TASKS_FOLDER")
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + OUTSIDE)
    argv = [sys.executable, str(program), str(workers.certificates), *workers.addresses]

    def summaries() -> list[ContextSummary]:
        files = list(folder.glob("*.json"))
        return [msgspec.json.decode(each.read_bytes(), type=ContextSummary) for each in files]

    try:
        with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            assert eventually(
                lambda: [row.running for each in summaries() for row in each.tasks] == [1],
                timeout_s=60,
            )
            (summary,) = summaries()
            assert (summary.machine, summary.pid) == (socket.gethostname(), process.pid)
            assert summary.is_open
            (tmp_path / "done").touch()
        assert eventually(lambda: not summaries()[0].is_open, timeout_s=60)
    finally:
        workers.close()
