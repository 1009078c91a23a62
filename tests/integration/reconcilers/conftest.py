"""The fake backend under the real reconcilers, stepped by hand."""

from __future__ import annotations

import pytest

from jobs.backends import registry
from jobs.backends.fake import FakeBackend
from jobs.models import Job
from jobs.reconcilers import provisioning, queue, recovering, running, stopping, teardown
from tests.factories import make_job


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    """A fake backend of this test's own, found by the registry as any other."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    return backend


@pytest.fixture
def tick():
    """One beat of every reconciler, as the tasks run them."""

    def run() -> None:
        queue.run_pass()
        for reconciler in (provisioning, running, stopping, teardown, recovering):
            for row_id in reconciler.due():
                reconciler.step(row_id)

    return run


@pytest.fixture
def submitted(fake) -> Job:
    """A queued job of the fake backend."""
    return make_job(backend_name="fake")
