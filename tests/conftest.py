"""Fixtures for all tests: a real PostgreSQL and Redis for those that ask, once a session."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from tests.embedded_servers import SERVERS

if TYPE_CHECKING:
    from tests.s3_server import S3Server

# Slices of suites (`.ci/run`), and feature ids in JUnit files (`make features`).
pytest_plugins = ["tests.suites.plugin"]


def pytest_configure() -> None:
    """Begin with a SIGINT that interrupts: started in the background, a shell has it ignored.

    What is started from here would inherit that, and Ctrl-C could not be tested.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """See to it that no two tests have one id: xdist would run the first of them alone."""
    for item in items:
        # The ids that schemathesis gives leave the operation out.
        if operation := getattr(item, "operation_label", None):
            item._id = item.id.with_params(operation)
    seen = Counter(item.nodeid for item in items)
    if doubles := [nodeid for nodeid, times in seen.items() if times > 1]:
        raise pytest.UsageError(f"These ids belong to several tests: {doubles}")


def pytest_unconfigure() -> None:
    """Stop the servers, however the session ended."""
    SERVERS.close()


@pytest.fixture(scope="session", autouse=True)
def the_tests_own_clock() -> None:
    """Time is this process's here, so that a test can move it and none needs a database for it."""
    from jobs import clock

    clock.THE_CLOCK = clock.DatabaseClock(lambda: None)


@pytest.fixture(scope="session", autouse=True)
def the_tests_own_keys() -> None:
    """What secrets are sealed with here, as the embedded portal has it from its first start."""
    from django.conf import settings

    from jobs.seals import new_key

    settings.MPORTAL_SECRET_KEYS = [new_key()]


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """pytest-django's hook before the test database is made: there must be a server."""
    SERVERS.start_postgres()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A server of S3 for the session."""
    from tests.s3_server import S3Server

    server = S3Server()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The URL of the session's Redis, the same as settings.REDIS_URL."""
    SERVERS.start_redis()
    return SERVERS.redis.url


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of the session's Redis, emptied before and after."""
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    yield client
    client.flushall()
    client.close()


@pytest.fixture
def mportal_home(settings, tmp_path: Path) -> Path:
    """An MPORTAL_HOME of the test's own."""
    settings.MPORTAL_HOME = tmp_path
    settings.MPORTAL_PORTAL_FILE = tmp_path / "portal.json"
    return tmp_path
