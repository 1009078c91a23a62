"""A real portal, once for all acceptance tests that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.portal_process import PortalProcess

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all tests here to `make slow`; `make test` takes the one that is marked `smoke`."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def portal() -> Iterator[PortalProcess]:
    """A running portal on a temporary home. Leave it running; tests that kill make their own."""
    process = PortalProcess()
    try:
        process.start()
        yield process
    finally:
        process.close()


@pytest.fixture
def own_portal() -> Iterator[PortalProcess]:
    """A portal of the test's own, not started yet."""
    process = PortalProcess()
    yield process
    process.close()
