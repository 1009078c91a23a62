"""Fixtures for all tests, among them a real PostgreSQL and Redis for those that request them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from hypothesis import HealthCheck, settings

from tests.embedded_servers import SERVERS

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

    from tests.s3_server import S3Server

# Slices of suites (`.ci/run`), and feature ids in JUnit files (`make features`).
pytest_plugins = ["tests.suites.plugin"]

# A change is tested with the same generated examples in each run, so that no run fails for code
# that did not change; SEARCH=1 generates others. How busy the machine is fails no test: by default
# an example fails that takes 200 ms, and a test whose first examples take a second.
settings.register_profile(
    "search", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("same-examples", settings.get_profile("search"), derandomize=True)
settings.load_profile("search" if os.environ.get("SEARCH") else "same-examples")


def pytest_configure() -> None:
    """Begin with a SIGINT that interrupts: started in the background, a shell has it ignored.

    What is started from here would inherit that, and Ctrl-C could not be tested.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ensure that no two tests have one id: xdist would run the first of them alone."""
    for item in items:
        # The ids that schemathesis gives leave the operation out.
        if operation := getattr(item, "operation_label", None):
            item._id = item.id.with_params(operation)
    seen = Counter(item.nodeid for item in items)
    if doubles := [nodeid for nodeid, times in seen.items() if times > 1]:
        raise pytest.UsageError(f"These ids belong to several tests: {doubles}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Request PostgreSQL in a worker if a test needs it, before reporting the collected tests."""
    if SERVERS.is_shared and any(needs_database(item) for item in session.items):
        SERVERS.request_postgres()


def needs_database(item: pytest.Item) -> bool:
    """Whether a test uses pytest-django's test database."""
    names = getattr(item, "fixturenames", ())
    return "django_db_setup" in names or item.get_closest_marker("django_db") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished() -> None:
    """Start what a worker has requested, in the owner of the servers, before any test runs."""
    if SERVERS.postgres_requested:
        SERVERS.start_postgres()


def pytest_unconfigure() -> None:
    """Stop the servers, however the session ended."""
    SERVERS.close()


@pytest.fixture(scope="session", autouse=True)
def the_tests_own_clock() -> None:
    """Time is this process's here, so that a test can move it and none needs a database for it."""
    from jobs.ground import clock

    clock.THE_CLOCK = clock.DatabaseClock(lambda: None)


@pytest.fixture(scope="session", autouse=True)
def the_tests_own_keys() -> None:
    """Set the keys that seal secrets, as the embedded portal has them from its first start."""
    from django.conf import settings

    from jobs.ground.seals import new_key

    settings.MPORTAL_SECRET_KEYS = [new_key()]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_blocker: DjangoDbBlocker
) -> None:
    """Have a server before the test database is made, and in a worker a database to copy."""
    from django.core.management import call_command
    from django.db import connection, connections
    from django.test import TransactionTestCase

    from tests.emptied_tables import empty_tables

    def migrate() -> None:
        with django_db_blocker.unblock():
            call_command("migrate", interactive=False, verbosity=0)
            connections.close_all()

    SERVERS.start_postgres()
    if SERVERS.is_shared:
        connection.settings_dict["TEST"]["TEMPLATE"] = SERVERS.template(migrate)
    TransactionTestCase._fixture_teardown = empty_tables


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Yield an S3 server for the session."""
    from tests.s3_server import S3Server

    server = S3Server()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def redis_url() -> str:
    """Return the URL of the session's Redis, the same as settings.REDIS_URL."""
    SERVERS.start_redis()
    return SERVERS.redis.url


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """Yield a client of the session's Redis, emptied before and after."""
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    yield client
    client.flushall()
    client.close()


@pytest.fixture
def mportal_home(settings, tmp_path: Path) -> Path:
    """Return an MPORTAL_HOME for this test only."""
    settings.MPORTAL_HOME = tmp_path
    settings.MPORTAL_PORTAL_FILE = tmp_path / "portal.json"
    return tmp_path
