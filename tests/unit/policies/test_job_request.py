"""A job's request has all that the specification says, also after it was stored."""

from __future__ import annotations

from typing import Any

from jobs.policies.idle import DEFAULT_MINUTES
from jobs.policies.job_request import JobRequest
from monarch_client.spec import JobSpec
from tests.each_case import check_each

SMALLEST = {"name": "hello", "run": "echo hello"}
# Each key of a specification that a request reads, alone or with what it needs beside it.
SPECS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "nodes and GPUs": {"num_nodes": 2, "resources": {"accelerators": {"H100": 8}}},
    "a choice of GPUs": {"resources": {"any_of": [{"accelerators": "A100:4"}, {"cpus": "8"}]}},
    "a queue": {"portal": {"queue": "night", "preemptible": True, "max_duration": "2h"}},
    "a group": {"portal": {"concurrency": {"group": "data", "max": 3}}},
    "reuse": {"portal": {"reuse": True, "idle": {"minutes": 30, "then": "stop", "down_after": 5}}},
    "a named cluster": {"portal": {"cluster": "mp-a", "reuse": True}},
    "idle GPUs": {"portal": {"idle": {"minutes": 10, "gpu_below": 5}}},
    "retries": {"portal": {"retry": {"max_attempts": 4, "max_recoveries": 0}}},
    "its parent's driver": {"run": None, "portal": {"driver": "parent", "meshes": {"a": 2}}},
    "a budget": {"portal": {"budget_usd": 12.5}},
    "a dependency": {"portal": {"depends_on": [3], "if_dependency_fails": "hold"}},
    "secrets": {"secrets": {"TOKEN": "hub"}},
    "log policies": {
        "portal": {
            "log_policies": [
                {"name": "mine", "pattern": "boom", "actions": ["fail"]},
                {"name": "cuda_oom", "actions": []},
            ]
        }
    },
}


def request_of(**fields: Any) -> JobRequest:
    return JobRequest.of(JobSpec.parse({**SMALLEST, **fields}), "fake")


def test_a_request_is_the_same_once_it_was_stored() -> None:
    def check(fields: dict[str, Any]) -> None:
        request = request_of(**fields)
        assert JobRequest.stored(request.columns(), request.options()) == request

    check_each(SPECS.values(), check)


def test_what_the_queue_counts_is_of_all_nodes() -> None:
    request = request_of(**SPECS["nodes and GPUs"])
    assert (request.num_nodes, request.gpu_type, request.gpu_count) == (2, "H100", 16)


def test_only_a_job_that_takes_any_matching_cluster_has_a_fingerprint() -> None:
    assert request_of(**SPECS["reuse"]).fingerprint
    assert not request_of(**SPECS["a named cluster"]).fingerprint
    assert not request_of().fingerprint


def test_gpus_are_watched_only_where_the_specification_says_so() -> None:
    assert request_of(**SPECS["idle GPUs"]).gpu_below == 5
    assert request_of(**SPECS["reuse"]).gpu_below is None
    assert request_of().idle.minutes == DEFAULT_MINUTES


def test_jobs_that_differ_only_in_their_backend_share_a_price_key() -> None:
    spec = JobSpec.parse({**SMALLEST, **SPECS["reuse"]})
    one, other = JobRequest.of(spec, "fake"), JobRequest.of(spec, "skypilot")
    assert one.price_key == other.price_key
    assert one.fingerprint != other.fingerprint
