"""Real faults on a real portal are named with the line that shows them."""

from __future__ import annotations

import shutil

import pytest

from tests.planted_faults import CRASH, NO_DRIVER, SOON, STOPPED_WORKER
from tests.portal_process import PortalProcess

JOBS = "/api/v1/projects/default/jobs"
# What goes wrong, by really going wrong: code, command, part of the line.
REFUSED = 'import socket; socket.create_connection(("127.0.0.1", 1))'
NO_NAME = 'import socket; socket.getaddrinfo("no.such.invalid", 1)'
FAULTS = [
    ("module_not_found", "python3 -c 'import no_such_thing'", "No module named 'no_such_thing'"),
    ("worker_crash", CRASH, "SIGSEGV"),
    ("connection_refused", f"python3 -c '{REFUSED}'", "Connection refused"),
    ("name_resolution", f"python3 -c '{NO_NAME}'", "gaierror: [Errno -"),
    ("pip_failed", None, "No matching distribution found"),
]
NEEDS_DRIVER = ("gpu_driver_missing", NO_DRIVER, "libcuda.so.1: cannot open shared object file")


def attempt_of(portal: PortalProcess, spec: dict, timeout_s: int) -> dict:
    """Run a job to its end and return its first attempt."""
    with portal.client() as client:
        job = client.post(JOBS, json={"spec": spec}).raise_for_status().json()
        waited = portal.mportal("wait", str(job["id"]), "--timeout", str(timeout_s))
        assert waited.returncode not in {0, 124, 125}, waited.stderr
        return client.get(f"{JOBS}/{job['id']}/attempts").json()["results"][0]


def check(portal: PortalProcess, code: str, spec: dict, line: str, timeout_s: int = 60) -> None:
    diagnosis = attempt_of(portal, spec, timeout_s)["diagnosis"]
    assert diagnosis is not None
    assert diagnosis["code"] == code
    assert line in diagnosis["evidence"]
    assert diagnosis["fix"]


@pytest.mark.parametrize(("code", "command", "line"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_planted_fault_is_named_with_its_line(portal, code, command, line):
    if command is None:
        # No index is asked: what is not in an empty folder is nowhere.
        spec = {"setup": "python3 -m pip install --no-index no-such-thing==9", "run": "true"}
    else:
        spec = {"run": command}
    check(portal, code, spec, line)


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has the driver")
def test_a_missing_driver_is_named_with_its_line(portal):
    code, command, line = NEEDS_DRIVER
    check(portal, code, {"run": command}, line)


@pytest.mark.timeout(400)
def test_a_worker_that_does_not_answer_is_named_with_what_monarch_said(portal):
    spec = {
        "run": STOPPED_WORKER,
        "envs": SOON,
        "portal": {"meshes": {"all": 1}},
    }
    check(portal, "spawn_timeout", spec, "config push failed", timeout_s=100)
