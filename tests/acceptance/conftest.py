"""A real portal, once for all acceptance tests that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.portal_process import PortalProcess


@pytest.fixture(scope="session")
def portal() -> Iterator[PortalProcess]:
    """Yield a running portal on a temporary home, for tests that do not kill or stop it."""
    process = PortalProcess()
    try:
        process.start()
        yield process
    finally:
        process.close()


@pytest.fixture
def own_portal() -> Iterator[PortalProcess]:
    """Yield a portal for this test only, which is not started yet."""
    process = PortalProcess()
    yield process
    process.close()
