"""Locks of steps are leases: a hung process loses them, a slow one keeps them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from django.db import connection

from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.lock_session import LEASE_S, lock_session
from tests.portal_process import CHECKOUT
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

HOLDER = """
import django, sys
django.setup()
from jobs.background.exclusive import LockSpace, exclusive
with exclusive(LockSpace.JOB, 7) as alone:
    print("held" if alone else "not held", flush=True)
    sys.stdin.readline()
print("given back", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def no_lock_is_left() -> Iterator[None]:
    yield
    lock_session().close()


@contextmanager
def another_process() -> Iterator[subprocess.Popen[str]]:
    """Start a process of the portal's that holds the lock of job 7 until it is written to."""
    given = connection.get_connection_params()
    account = f"{given['user']}:{quote(given['password'], safe='')}"
    url = f"postgresql://{account}@/{given['dbname']}?host={given['host']}"
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "REDIS_URL": "unix:///nowhere",
        "SECRET_KEY": "k" * 60,
        "DJANGO_SETTINGS_MODULE": "monarch_portal.settings",
    }
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def is_free(row_id: int = 7) -> bool:
    with exclusive(LockSpace.JOB, row_id) as alone:
        return alone


@pytest.mark.feature("P2.2")
def test_a_stopped_process_loses_its_row_within_ten_seconds_and_finds_out():
    with another_process() as holder:
        assert not is_free()
        holder.send_signal(signal.SIGSTOP)
        assert eventually(is_free, timeout_s=10)
        with exclusive(LockSpace.JOB, 7) as alone:
            assert alone
            holder.send_signal(signal.SIGCONT)
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert holder.stdout.readline() == "given back\n"


def test_a_slow_step_keeps_its_row_for_longer_than_a_lease():
    with another_process():
        assert not eventually(is_free, timeout_s=LEASE_S + 3)


def test_a_session_that_was_cut_off_costs_the_locks_and_nothing_else():
    with exclusive(LockSpace.JOB, 8):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory'"
                " AND objid = 8 AND database = (SELECT oid FROM pg_database"
                " WHERE datname = current_database())"
            )
        with exclusive(LockSpace.JOB, 9) as alone:
            assert alone
    assert is_free(8)
