"""A whole portal with real jobs, the people who use it, and their browsers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.browser.real.living import Living, People
from tests.browser.visits import Visitors
from tests.portal_process import PortalProcess

MAKE_PEOPLE = "from tests.browser.real.people import make_people; make_people()"


@pytest.fixture(scope="session")
def living() -> Iterator[Living]:
    """Start the portal, once a session. Tests that kill parts of it leave it whole again."""
    portal = PortalProcess()
    try:
        portal.start()
        made = portal.manage("shell", "-v", "0", "-c", MAKE_PEOPLE)
        assert made.returncode == 0, made.stdout + made.stderr
        yield Living(portal, json.loads(made.stdout.splitlines()[-1]))
    finally:
        portal.close()


@pytest.fixture
def people(living: Living, visitors: Visitors) -> Iterator[People]:
    """Provide browsers of people by name; jobs that still run are ended with the test."""
    yield People(living, visitors)
    living.end_jobs()
