"""The pool of connections: dead ones fail no request."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from monarch_portal.database_settings import pool_options
from monarch_portal.postgresql.base import DatabaseWrapper

pytestmark = pytest.mark.django_db(transaction=True)
MOST = 6
WHERE = """
FROM pg_stat_activity WHERE application_name = 'pooled' AND datname = current_database()
"""


@pytest.fixture
def pooled() -> Iterator[DatabaseWrapper]:
    """Yield a second connection to the test's database, through a pool."""
    settings = connection.settings_dict
    options = {**settings["OPTIONS"], "pool": pool_options(MOST), "application_name": "pooled"}
    # Under the same name: tests may open no other database.
    wrapper = DatabaseWrapper({**settings, "OPTIONS": options}, alias="default")
    yield wrapper
    wrapper.close()
    wrapper.close_pool()


def ask(wrapper: DatabaseWrapper) -> None:
    wrapper.connect()
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT 1")
    wrapper.close()


def fill(pooled: DatabaseWrapper) -> None:
    """Have as many connections as there may be, all of them idle."""
    together = threading.Barrier(MOST)

    def use() -> None:
        wrapper = DatabaseWrapper(pooled.settings_dict, alias=pooled.alias)
        wrapper.connect()
        together.wait(10)
        wrapper.close()

    threads = [threading.Thread(target=use) for _ in range(MOST)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def end_all() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(pg_terminate_backend(pid, 5000)) {WHERE}")
        return cursor.fetchone()[0]


def test_sessions_that_were_ended_while_idle_fail_no_request_and_delay_none(pooled):
    fill(pooled)
    assert end_all() == MOST
    begun = time.monotonic()
    for _ in range(2 * MOST):
        ask(pooled)
    assert time.monotonic() - begun < 1


def test_while_the_database_is_away_only_the_first_wait_for_it(pooled):
    host = pooled.settings_dict["HOST"]
    pooled.settings_dict["HOST"] = "/nowhere"
    pooled.settings_dict["OPTIONS"]["pool"]["timeout"] = 4
    waited = []
    for _ in range(2):
        begun = time.monotonic()
        with pytest.raises(psycopg.OperationalError):
            pooled.connect()
        waited.append(time.monotonic() - begun)
    assert waited[1] < 1
    pooled.settings_dict["HOST"] = host
    pooled.close_pool()
    ask(pooled)


def test_a_connection_is_used_again(pooled):
    for _ in range(5):
        ask(pooled)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) {WHERE}")
        assert cursor.fetchone()[0] == 1
