"""The fake backend under the real reconcilers, stepped by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.backends import registry
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.models import Job, Project
from jobs.reconcilers import provisioning, queue, recovering, running, stopping, teardown
from jobs.statuses import JobStatus
from tests.factories import make_job, make_project, make_spec
from tests.integration.reconcilers.steps import push, status_of


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    """Return a fake backend for this test only, found by the registry as any other."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    return backend


@pytest.fixture
def tick():
    """Return a function that runs one tick of every reconciler, as the tasks run them."""

    def run() -> None:
        queue.run_pass()
        for reconciler in (provisioning, running, stopping, teardown, recovering):
            for row_id in reconciler.due():
                reconciler.step(row_id)

    return run


@pytest.fixture
def submitted(fake) -> Job:
    """Submit a queued job of the fake backend."""
    return make_job(backend_name="fake")


@pytest.fixture
def project(db) -> Project:
    return make_project("rl")


@pytest.fixture
def submit_kept(fake, project) -> Callable[..., Job]:
    """Return a function that makes a queued job that keeps its cluster warm, and ends at once."""
    fake.set_plan(FakePlan(run_s=0))

    def make(idle=None, project=project, **fields) -> Job:
        portal = {"reuse": True, "idle": idle or {"minutes": 10}, **fields.pop("portal", {})}
        spec = make_spec(portal=portal, num_nodes=fields.get("num_nodes", 1))
        return make_job(project, backend_name="fake", spec=spec, **fields)

    return make


@pytest.fixture
def run_through(fake, tick) -> Callable[[Job], Job]:
    """Return a function that brings a job to its end."""

    def run(job: Job) -> Job:
        tick()
        push(fake, job)
        tick()
        assert status_of(job) in {JobStatus.SUCCEEDED, JobStatus.FAILED}
        return job

    return run
