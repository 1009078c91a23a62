"""A context whose driver is attached from outside of the job, through a network that is cut."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.context.test_mesh import PRELUDE
from tests.monarch_workers import PORT, MonarchWorkers
from tests.programs import CHECKOUT
from tests.tunnel_driver import Network
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.monarch]

# Longer than hosts and drivers within a job wait for each other.
CUT_S = 10.0
PROGRAM = """
import numpy as np
from monarch_client.attaching.loss import LossAlarm

alarm = LossAlarm()
folder = Path(sys.argv[1]).parent
meshes.join(os.environ["GATEWAY"], Path(sys.argv[1]))
hosts = meshes.meshes_of({"trainers": sys.argv[2:]})["trainers"]
context = JobContext(hosts)
def pause(name):
    (folder / name).touch()
    while not (folder / f"{name}-over").exists():
        time.sleep(0.02)
def work(n):
    pause(f"task-{n}")
    return np.full(1_000_000, n, np.uint8)
def agent():
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
counters = [context.create_actor(Counter, options=ActorOptions(resources={"CPU": 2})) for _ in "ab"]
options = TaskOptions(max_retries=0, resources={"CPU": 0})
kept = context.create_task(np.arange, (1_000_000,), options=options)
context.wait([kept, *[each.size() for each in counters]], 3, timeout=60)
tasks = [context.create_task(work, (n,), options=options) for n in range(4)]
pause("away")
say(*[int(array[-1]) for array in context.get(tasks, timeout=60)])
say(*context.get([each.size() for each in counters], timeout=60), int(context.get(kept)[-1]))
del tasks, kept, counters
remote = context._driver.hosts._hosts.hosts
os.kill(context.get(context.create_task(agent, options=options), timeout=60), signal.SIGKILL)
ended = time.monotonic() + 60
while not any(host.is_lost for host in remote) and time.monotonic() < ended:
    time.sleep(0.05)
say(sum(host.is_lost for host in remote))
pause("session")
alarm.report(meshes.ConnectionLostError("The session is over."))
while not all(host.is_lost for host in remote) and time.monotonic() < ended + 60:
    time.sleep(0.05)
say(sum(host.is_lost for host in remote))
os._exit(0)
"""


@pytest.mark.timeout(240)
def test_hosts_are_as_patient_as_the_session_of_a_driver_outside_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    workers = MonarchWorkers(tmp_path, 2)
    network = Network(PORT, workers.hosts[0])
    file = tmp_path / "program.py"
    file.write_text(PRELUDE.partition("profile.use(")[0] + PROGRAM)
    process = subprocess.Popen(
        [sys.executable, file, workers.certificates, *workers.addresses],
        env={**os.environ, "GATEWAY": f"tls://127.0.0.1:{network.proxy.port}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def wait_for(name: str) -> None:
        there = lambda: (tmp_path / name).exists() or process.poll() is not None  # noqa: E731
        assert eventually(there, timeout_s=90), name

    try:
        for name in ("away", *(f"task-{n}" for n in range(4))):
            wait_for(name)
        with network.cut(silently=True):
            for n in range(4):
                (tmp_path / f"task-{n}-over").touch()
            # The length is the subject: nothing is to be awaited.
            time.sleep(CUT_S)
        (tmp_path / "away-over").touch()
        wait_for("session")
        (tmp_path / "session-over").touch()
        with network.cut(silently=True):
            output, _ = process.communicate(timeout=90)
    finally:
        process.kill()
        process.communicate()
        network.proxy.close()
        workers.close()
    said = [line.removeprefix("said: ") for line in output.splitlines() if "said: " in line]
    assert said == ["0 1 2 3", "2 2 999999", "1", "2"], output
