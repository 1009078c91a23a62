"""A real portal, once for all acceptance tests that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.portal_process import PortalProcess


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
