"""`make demo` and the foreground portal, as someone at a terminal meets them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.portal_process import CHECKOUT, PortalProcess
from tests.waiting import eventually


@pytest.mark.feature("P1.1")
@pytest.mark.monarch
def test_the_demo_starts_a_portal_runs_a_job_and_leaves_the_portal_running(
    own_portal: PortalProcess,
) -> None:
    demo = run(own_portal, "make", "--no-print-directory", "demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr + own_portal.logs()
    printed = demo.stdout + demo.stderr
    for expected in ("Provisioning", "Starting workers", "all sums are right", "Succeeded"):
        assert expected in printed
    assert f"{own_portal.url}/default/jobs/1" in printed
    assert f"{own_portal.url}/sign-in/once/" in printed
    assert '{"time":' not in printed, "log lines are for services"
    assert own_portal.status()["running"]


@pytest.mark.monarch
def test_the_demo_ends_with_the_jobs_exit_code(own_portal: PortalProcess) -> None:
    own_portal.environment["MPORTAL_DEMO"] = "tests/acceptance/failing_job.yaml"
    # make itself turns whatever is not 0 into 2.
    assert run(own_portal, "make", "demo").returncode == 2
    assert run(own_portal, "deploy/demo", str(Path(sys.executable).parent)).returncode == 7


def test_ctrl_c_ends_the_portal_in_the_foreground(own_portal: PortalProcess) -> None:
    argv = [sys.executable, "-m", "monarch_portal.embedded", "run"]
    with subprocess.Popen(
        argv, cwd=CHECKOUT, env=own_portal.environment, stdout=subprocess.PIPE, text=True
    ) as portal:
        assert portal.stdout
        said = [next(portal.stdout)]
        while "To stop" not in said[-1]:
            said.append(next(portal.stdout))
        assert f"{own_portal.url}/sign-in/once/" in "".join(said)
        portal.send_signal(signal.SIGINT)
        assert portal.stdout.read().strip() == "The portal has ended."
        assert portal.wait(30) == 0
    assert eventually(lambda: not own_portal.pids())


def run(portal: PortalProcess, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=CHECKOUT,
        env=portal.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
