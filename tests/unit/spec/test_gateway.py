"""`portal.gateway`: jobs that laptops attach to, and those that have no driver of their own."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.policies.job_request import JobRequest
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import JobSpec

WAITING: dict[str, Any] = {"name": "dev", "portal": {"meshes": {"trainers": 2}, "gateway": True}}


def errors_of(source: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(source)
    return [(error.path, error.code) for error in caught.value.errors]


def test_a_job_that_laptops_attach_to_may_have_no_driver() -> None:
    spec = JobSpec.parse(WAITING)
    assert (spec.run, spec.waits_for_laptops) == ("", True)
    assert JobSpec.parse(spec.to_dict()) == spec
    request = JobRequest.of(spec, "local")
    assert (request.gateway, request.waits_for_laptops) == (True, True)
    assert JobRequest.stored(request.columns(), request.options()) == request


@pytest.mark.parametrize("run", ["", "  \n"])
def test_an_empty_run_is_no_driver(run: str) -> None:
    assert JobSpec.parse({**WAITING, "run": run}).waits_for_laptops


def test_a_job_with_a_driver_waits_for_no_laptops() -> None:
    request = JobRequest.of(JobSpec.parse({**WAITING, "run": "python train.py"}), "local")
    assert (request.gateway, request.waits_for_laptops) == (True, False)


@pytest.mark.parametrize("portal", [{}, {"meshes": {"trainers": 2}}])
def test_every_other_job_needs_run(portal: dict[str, Any]) -> None:
    assert errors_of({"name": "job", "portal": portal}) == [("run", "missing")]


def test_laptops_attach_to_meshes_only() -> None:
    source = {"name": "job", "run": "true", "portal": {"gateway": True}}
    assert errors_of(source) == [("portal.gateway", "conflict")]


def test_the_idle_time_of_a_job_without_a_driver_needs_no_warm_cluster() -> None:
    portal = {**WAITING["portal"], "idle": {"minutes": 5}}
    assert JobRequest.of(JobSpec.parse({**WAITING, "portal": portal}), "local").idle.minutes == 5
    with_driver = {**WAITING, "run": "python train.py", "portal": portal}
    assert errors_of(with_driver) == [("portal.idle", "conflict")]
