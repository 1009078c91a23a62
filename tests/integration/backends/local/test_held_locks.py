"""Launches and tear-downs beside a process that never releases its locks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import LaunchRequest
from jobs.backends.local.isolation import jobs_get_own_user
from jobs.errors import NoCapacityError
from tests import lock_holder
from tests.integration.backends.rigs import NODES, LocalRig
from tests.waiting import eventually

# Fields of a request that are no JSON, and that these launches do without.
LEFT_OUT = {"uploads", "authority_seed"}
UNREACHABLE = "http://127.0.0.1:9"
# Nothing here waits for longer than a cluster's own lock may be waited for.
BOUND_S = 10
# Launches a job from a process of its own, which stops itself in the middle of `STEP`.
LAUNCH_AND_STOP = """
import json, os, signal, sys
from pathlib import Path
from unittest.mock import patch
from jobs.backends.base import LaunchRequest
from jobs.backends.local.backend import LocalBackend, LocalOptions
from jobs.errors import NoCapacityError
step, options, request = json.loads(sys.argv[1])
module, _, name = step.rpartition(".")
original = getattr(__import__(module, fromlist=[name]), name)
stops = iter([True])

def stopping(*args):
    found = original(*args)
    if next(stops, False):
        os.kill(os.getpid(), signal.SIGSTOP)
    return found

paths = {key: Path(options[key]) for key in ("directory", "leases")}
backend = LocalBackend(LocalOptions(**paths, nodes=options["nodes"], portal_file=None), None)
with patch(step, stopping):
    try:
        backend.launch(LaunchRequest(**request))
    except NoCapacityError:
        print("no room", flush=True)
    else:
        print("launched", flush=True)
"""
CHOOSING = "jobs.backends.local.backend.choose_gpus"
RECORDING = "jobs.backends.local.backend.authority_for"
LEASING = "jobs.backends.local.slots._can_bind"


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def stopped_launch(
    local: LocalRig, request: LaunchRequest, step: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that has stopped in `step` of a launch; it is killed at the end."""
    fields = {name: getattr(request, name) for name in request.__slots__ if name not in LEFT_OUT}
    options = {"directory": str(local.folder), "leases": str(local._leases), "nodes": NODES}
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH_AND_STOP, json.dumps([step, options, fields])],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[4],
    ) as process:
        try:
            assert eventually(lambda: state_of(process.pid) == "T")
            yield process
        finally:
            process.kill()


def launch_in_time(local: LocalRig, request: LaunchRequest) -> None:
    """Launch; TimeoutError where that waits for another process."""
    helper = ThreadPoolExecutor(1)
    helper.submit(local.backend.launch, request).result(timeout=BOUND_S)
    helper.shutdown()


def quiet(local: LocalRig, nodes: int = 1) -> LaunchRequest:
    return replace(local.request("long", nodes), portal_url=UNREACHABLE)


@pytest.mark.parametrize("step", [CHOOSING, RECORDING, LEASING])
def test_a_launch_that_is_stopped_halfway_holds_up_no_other(local: LocalRig, step: str) -> None:
    with stopped_launch(local, quiet(local), step) as process:
        other = local.request("short")
        launch_in_time(local, other)
        assert local.ingest.end["reason"] == "COMPLETED"
        local.backend.tear_down(other.cluster_name)
        assert not local.remains(other.cluster_name)
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=20)[0] == b"launched\n"


def test_a_launch_that_was_stopped_takes_no_room_that_others_have_taken_since(
    local: LocalRig,
) -> None:
    with stopped_launch(local, quiet(local, NODES - 1), CHOOSING) as process:
        launch_in_time(local, quiet(local, 2))
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=20)[0] == b"no room\n"


def test_a_launch_that_dies_between_claim_and_record_gives_its_room_back_when_it_is_taken_down(
    local: LocalRig,
) -> None:
    dead, whole = quiet(local, NODES), quiet(local, NODES)
    with stopped_launch(local, dead, RECORDING):
        pass
    with pytest.raises(NoCapacityError):
        local.backend.launch(whole)
    local.backend.tear_down(dead.cluster_name)
    local.backend.launch(whole)


@pytest.mark.skipif(not jobs_get_own_user(), reason="jobs get no user of their own")
def test_a_job_that_locks_all_it_can_open_holds_up_no_other(local: LocalRig) -> None:
    local.backend.launch(quiet(local))  # now there is everything that a job could lock
    local.backend.launch(local.request_program(lock_holder.RUN))
    assert eventually(lambda: lock_holder.READY in local.ingest.texts())
    other = quiet(local)
    launch_in_time(local, other)
    local.backend.tear_down(other.cluster_name)
    assert not local.remains(other.cluster_name)
