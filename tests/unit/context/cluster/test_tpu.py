"""Calls on TPU slices: the specification for SkyPilot, and the outcomes of the hosts."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence

import httpx
import pytest

from monarch_client.context import PortalClusterContext, Resource, RuntimeEnv, TpuRunConfig
from monarch_client.context.cluster import host_call
from monarch_client.context.cluster.specifications import script_spec, tpu_spec
from monarch_client.context.errors import ClusterJobError, NoTpuError, ResultTooLargeError
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import JobSpec
from tests.each_case import check_each
from tests.struck_programs import said_when_struck
from tests.unit.rest.fake_portal import (
    MOMENT,
    FakePortal,
    ended_job,
    job_json,
    line_json,
    ok,
    page,
    problem,
)

pytestmark = pytest.mark.feature("S4.10")

JOBS = "/projects/rl/jobs"
FOUR_HOSTS = TpuRunConfig("v4-8", num_slices=4)
UPLOAD = f"upload:{'0' * 64}"
DONE = ended_job(attempt_count=1)


def portal_with(job: dict, lines: Sequence[tuple[int, str]] = ()) -> FakePortal:
    """Return a portal whose job is running, and then ends as `job` with this log."""
    portal = FakePortal()

    def upload(request):
        portal.on(f"GET {request.url.path}", ok({}))
        body = {"digest": "0" * 64, "reference": UPLOAD, "size_bytes": 1, "file_count": 1}
        body["created_at"] = MOMENT
        return ok(body, 201)(request)

    portal.on("POST /projects/rl/uploads", upload)
    portal.on(f"POST {JOBS}", ok(job_json(), 201))
    portal.on(f"GET {JOBS}/42", ok(job_json(status="RUNNING")), ok(job))
    rows = [line_json(at, text, rank=rank) for at, (rank, text) in enumerate(lines, 1)]
    portal.on(f"GET {JOBS}/42/logs", page(rows))
    return portal


def context_of(portal: FakePortal) -> PortalClusterContext:
    return PortalClusterContext(portal.client(), "rl", resources={"infra": "gcp/us-central2"})


def host_lines(*values: object) -> list[tuple[int, str]]:
    """Return the log of hosts that return these values; an error is raised there."""

    def outcome(value: object) -> object:
        if isinstance(value, Exception):
            raise value
        return value

    return [
        (rank, line)
        for rank, value in enumerate(values)
        for line in host_call.outcome_lines(lambda _, value=value: outcome(value), None)[0]
    ]


def test_a_slice_has_the_hosts_of_its_type():
    def check(tpu_type, slices, hosts):
        assert TpuRunConfig(tpu_type, num_slices=slices).host_count == hosts

    check_each(
        [
            ("v4-8", 1, 1),
            ("v4-32", 1, 4),
            ("tpu-v4-64", 1, 8),
            ("v5p-128", 1, 16),
            ("v5p-128", 2, 32),
            ("v5p-256", 1, 32),
            ("v6e-8", 1, 1),
            ("v6e-256", 1, 64),
            ("v5e-16", 2, 8),
        ],
        check,
    )


def test_a_config_that_cannot_be_is_refused():
    for wrong in ({"tpu_type": "H100:8"}, {"tpu_type": "v4-8", "num_slices": 0}):
        with pytest.raises(ValueError, match=r"TPU type|num_slices"):
            TpuRunConfig(**wrong)


def test_slices_are_nodes_with_an_accelerator_of_skypilot():
    config = TpuRunConfig("v5e-16", num_slices=2, max_retries_failure=3)
    env = RuntimeEnv(package_requirements=["monarch-portal[context]"], env={"MODE": "fast"})
    spec = tpu_spec(UPLOAD, config, env, {"infra": "gcp/us-central2", "use_spot": True})
    assert spec["num_nodes"] == 2
    assert spec["resources"] == {
        "infra": "gcp/us-central2",
        "use_spot": True,
        "accelerators": "tpu-v5litepod-16:1",
    }
    assert spec["portal"]["retry"] == {"max_attempts": 4, "max_recoveries": 1000}
    assert spec["portal"]["log_policies"][0]["actions"] == ["no_retry"]
    assert spec["envs"] == {"MODE": "fast"}
    assert "'monarch-portal[context]'" in spec["setup"]
    assert spec["run"].endswith("python3 -m monarch_client.context.cluster.host_call")
    JobSpec.parse(spec, for_server=True)


@pytest.mark.slow
def test_skypilot_itself_knows_the_accelerators_as_tpus(tmp_path):
    types = ("v4-32", "v5e-16", "v5p-128", "v6e-256")
    names = [TpuRunConfig(each).accelerator for each in types]
    program = f"""
from sky import Resources
for name in {names}:
    found = Resources(infra="gcp", accelerators=f"{{name}}:1")
    assert found.accelerators == {{name: 1}}, found
    assert "runtime_version" in found.accelerator_args, found
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_minimum_resources_of_a_job_become_those_of_skypilot():
    least = [Resource("CPU", 4), Resource("memory", 8 * 2**30), Resource("H100", 8)]
    spec = script_spec("true", RuntimeEnv(minimum_resources=least), {"infra": "aws"}, 2)
    assert spec["resources"] == {
        "infra": "aws",
        "cpus": "4+",
        "memory": "8+",
        "accelerators": "H100:8",
    }
    JobSpec.parse(spec, for_server=True)
    with pytest.raises(ValueError, match="type of its accelerators"):
        script_spec("true", RuntimeEnv(minimum_resources=[Resource("GPU", 1)]), {}, 1)


def test_results_come_back_in_the_order_of_ranks_and_from_interleaved_lines():
    lines = host_lines(b"a" * 9000, {"rank": 1}, None, "three")
    lines = sorted(lines, key=lambda line: len(line[1]))
    portal = portal_with(DONE, [(0, "a line of the function"), *lines])
    results: list[object] = context_of(portal).run_on_tpu(str, FOUR_HOSTS)
    assert results == [b"a" * 9000, {"rank": 1}, None, "three"]
    sent = json.loads(portal.seen(f"POST {JOBS}")[0].content)["spec"]
    assert sent["workdir"].startswith("upload:")
    assert sent["resources"] == {"infra": "gcp/us-central2", "accelerators": "tpu-v4-8:1"}
    assert sent["num_nodes"] == 4


def test_an_error_of_one_host_is_raised_with_its_type_and_traceback():
    lines = host_lines(1, ValueError("step 7"))
    portal = portal_with(ended_job("FAILED", attempt_count=1), lines)
    with pytest.raises(ValueError, match="step 7") as raised:
        context_of(portal).run_on_tpu(lambda context: 0, TpuRunConfig("v4-8", num_slices=2))
    assert "Traceback" in str(raised.value.__cause__)


def test_a_result_above_the_limit_is_an_error_that_says_so():
    lines = host_lines(b"a" * (host_call.MAX_BYTES + 1))
    assert isinstance(host_call.read_outcomes(lines)[0].error, ResultTooLargeError)


def test_a_job_without_all_results_is_an_error():
    portal = portal_with(DONE, host_lines(1))
    with pytest.raises(ClusterJobError, match=r"1 results.* 4 hosts"):
        context_of(portal).run_on_tpu(lambda context: 0, FOUR_HOSTS)
    portal = portal_with(ended_job("CANCELLED", attempt_count=1, message="bob cancelled it."))
    with pytest.raises(ClusterJobError, match="bob cancelled it"):
        context_of(portal).run_on_tpu(lambda context: 0, FOUR_HOSTS)


def test_a_portal_without_such_slices_is_a_clear_error():
    portal = portal_with(ended_job("FAILED", stop_reason="NO_CAPACITY", message="No cloud has it."))
    with pytest.raises(NoTpuError, match=r"tpu-v4-8: No cloud has it\."):
        context_of(portal).run_on_tpu(lambda context: 0, FOUR_HOSTS)
    for path, kind in (("resources.accelerators", NoTpuError), ("num_nodes", InvalidSpecErrors)):
        error = {"path": path, "line": None, "code": "x", "message": "No GPUs.", "suggestion": None}
        portal.on(f"POST {JOBS}", problem(422, "invalid_spec", errors=[error]))
        with pytest.raises(kind, match=r"No GPUs\."):
            context_of(portal).run_on_tpu(lambda context: 0, FOUR_HOSTS)


def test_each_host_of_a_slice_has_a_result():
    slices = TpuRunConfig("v4-32", num_slices=2)
    portal = portal_with(DONE, host_lines(*range(8)))
    assert context_of(portal).run_on_tpu(lambda context: 0, slices) == [*range(8)]
    sent = json.loads(portal.seen(f"POST {JOBS}")[0].content)["spec"]
    assert (sent["num_nodes"], sent["resources"]["accelerators"]) == (2, "tpu-v4-32:1")
    portal = portal_with(DONE, host_lines(*range(7)))
    with pytest.raises(ClusterJobError, match=r"7 results.* 8 hosts"):
        context_of(portal).run_on_tpu(lambda context: 0, slices)


def test_an_interrupted_call_cancels_its_job():
    def interrupt(_: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    portal = portal_with(DONE)
    portal.on(f"GET {JOBS}/42", interrupt)
    portal.on(f"POST {JOBS}/42/actions/cancel", ok(job_json(status="STOPPING")))
    with pytest.raises(KeyboardInterrupt):
        context_of(portal).run_on_tpu(lambda context: 0, FOUR_HOSTS)
    assert len(portal.seen(f"POST {JOBS}/42/actions/cancel")) == 1


@pytest.mark.slow
def test_a_host_calls_the_function_with_a_working_context(tmp_path):
    def fn(context):
        sys.stdout.write("without an end of line")
        sys.stdout.flush()
        return context.get(context.create_task(lambda: 42))

    (tmp_path / host_call.FUNCTION_FILE).write_bytes(host_call.pickling.dumps(fn))
    command = [sys.executable, "-m", host_call.__name__]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = [(0, line) for line in done.stdout.splitlines()]
    assert host_call.read_outcomes(lines)[0].value == 42

    (tmp_path / host_call.FUNCTION_FILE).write_bytes(pickle.dumps(len))
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    lines = [(0, line) for line in done.stdout.splitlines()]
    assert isinstance(host_call.read_outcomes(lines)[0].error, TypeError)


CALLS = """
from monarch_client.context import PortalClusterContext, TpuRunConfig

PortalClusterContext._uploaded = lambda *_: "upload:" + "0" * 64
PortalClusterContext(client, "rl").run_on_tpu(print, TpuRunConfig("v4-8"))
"""


def test_a_signal_cancels_the_job_of_a_call() -> None:
    assert said_when_struck(CALLS, signal.SIGTERM) == "cancelled"
