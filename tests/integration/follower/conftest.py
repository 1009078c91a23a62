"""Fixtures of the tests of followers: a backend to fetch from, an attempt on it, followers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jobs.backends import registry
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.follower.loop import FollowerLoop
from jobs.models import Attempt
from tests.factories import make_job
from tests.integration.follower.steps import LINES, launched


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    """Return a backend whose nodes cannot reach the portal."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    settings.MEDIA_ROOT = tmp_path / "blobs"
    backend = registry.get("fake")
    assert isinstance(backend, FakeBackend)
    backend.be_pulled()
    backend.set_plan(FakePlan(lines=LINES))
    return backend


@pytest.fixture
def attempt(fake: FakeBackend) -> Attempt:
    """Create an attempt whose machines are up."""
    return launched(make_job(backend_name="fake"))


@pytest.fixture
def follower() -> Iterator[Callable[[], FollowerLoop]]:
    """Yield a function that makes followers; they end with the test."""
    made: list[FollowerLoop] = []

    def make() -> FollowerLoop:
        made.append(FollowerLoop())
        return made[-1]

    yield make
    for loop in made:
        loop.end()
