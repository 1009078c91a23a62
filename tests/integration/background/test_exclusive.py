"""The lock that makes a step the only one on its row, shown with a second real session."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest
from django.db import connection

from jobs.background.exclusive import LockSpace, exclusive

pytestmark = pytest.mark.django_db(transaction=True)

TAKE = "SELECT pg_try_advisory_lock(%s, %s)"


@pytest.fixture
def other_session():
    """Open a second session on the same database, as another process would have."""
    parameters = connection.get_connection_params()
    allowed = {
        name: parameters[name]
        for name in ("dbname", "user", "password", "host", "port")
        if parameters.get(name)
    }
    with psycopg.connect(**allowed, autocommit=True) as session:
        yield session


def take(session, row_id: int) -> bool:
    return session.execute(TAKE, [int(LockSpace.JOB), row_id]).fetchone()[0]


def test_while_one_process_holds_a_row_another_learns_so_without_waiting(other_session):
    assert take(other_session, 7)
    with exclusive(LockSpace.JOB, 7) as alone:
        assert not alone
    with exclusive(LockSpace.JOB, 8) as alone:
        assert alone


def test_the_row_is_free_again_afterwards_even_if_the_step_failed(other_session):
    with pytest.raises(RuntimeError), exclusive(LockSpace.JOB, 7):
        raise RuntimeError
    assert take(other_session, 7)


def test_who_did_not_get_the_lock_never_gives_it_away(other_session):
    assert take(other_session, 7)
    with exclusive(LockSpace.JOB, 7):
        pass
    with exclusive(LockSpace.JOB, 7) as alone:
        assert not alone


def test_a_killed_process_leaves_no_lock_behind(other_session):
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    ) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline().strip() == b"held"
            assert not take(other_session, 7)
        finally:
            holder.kill()
    # PostgreSQL notices the closed socket by itself; waiting for the lock is waiting for that.
    other_session.execute("SET lock_timeout = '10s'")
    other_session.execute("SELECT pg_advisory_lock(%s, %s)", [int(LockSpace.JOB), 7])


_HOLDER = f"""
import os, sys, psycopg
session = psycopg.connect(os.environ["CONNINFO"], autocommit=True)
assert session.execute("{TAKE}", [{int(LockSpace.JOB)}, 7]).fetchone()[0]
print("held", flush=True)
sys.stdin.read()
"""


def _environment() -> dict[str, str]:
    parameters = connection.get_connection_params()
    named = ("dbname", "user", "password", "host", "port")
    conninfo = psycopg.conninfo.make_conninfo(
        **{name: parameters[name] for name in named if parameters.get(name)}
    )
    return {"CONNINFO": conninfo, "PATH": "/usr/bin:/bin"}
