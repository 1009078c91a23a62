"""Jobs of this machine: what they leave behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from monarch_client.context import JobStatus, LocalClusterContext, TpuRunConfig
from monarch_client.context.cluster import local_process
from monarch_client.context.errors import ContextClosedError, NoTpuError
from tests.struck_programs import said_when_struck
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S4.9")


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_in(cluster: LocalClusterContext, job: str) -> int:
    assert eventually(lambda: cluster.get_job_logs(job)[0].endswith("\n"))
    return int(cluster.get_job_logs(job)[0])


def test_close_ends_jobs_that_ignore_sigterm_and_removes_their_logs(monkeypatch):
    monkeypatch.setattr(local_process, "GRACE_S", 0.05)
    with LocalClusterContext() as cluster:
        job = cluster.create_job("trap '' TERM; echo $$; while :; do sleep 0.05; done")
        pid, folder = pid_in(cluster, job), cluster._folder
    assert not is_alive(pid)
    assert not folder.exists()
    with pytest.raises(ContextClosedError):
        cluster.create_job("true")


JOB = """
import time
from monarch_client.context import LocalClusterContext

cluster = LocalClusterContext()
job = cluster.create_job("echo $$; sleep 600")
while not cluster.get_job_logs(job)[0].endswith("\\n"):
    time.sleep(0.01)
say(cluster.get_job_logs(job)[0])
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_signal_to_the_program_ends_its_jobs():
    pid = int(said_when_struck(JOB, signal.SIGTERM))
    assert eventually(lambda: not is_alive(pid))


def test_what_a_script_leaves_in_the_background_ends_with_it():
    with LocalClusterContext() as cluster:
        job = cluster.create_job("sleep 600 & echo $!")
        pid = pid_in(cluster, job)
        assert eventually(lambda: cluster.list_jobs()[0].status is JobStatus.SUCCEEDED)
        assert eventually(lambda: not is_alive(pid))


def test_a_job_runs_in_the_directory_of_the_program():
    with LocalClusterContext() as cluster:
        job = cluster.create_job("pwd")
        assert eventually(lambda: cluster.get_job_logs(job)[0].strip() == str(Path.cwd()))


@pytest.mark.feature("S4.10")
def test_this_machine_has_no_tpu_slices():
    with LocalClusterContext() as cluster, pytest.raises(NoTpuError, match="tpu-v4-8"):
        cluster.run_on_tpu(lambda context: 1, TpuRunConfig("v4-8"))
