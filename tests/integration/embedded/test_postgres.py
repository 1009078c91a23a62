"""The embedded PostgreSQL: its password, its account, its data from start to start."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from monarch_portal.embedded import binaries
from monarch_portal.embedded.account import SERVER_IDS, Account, ourselves, server_account
from monarch_portal.embedded.errors import (
    DataVersionError,
    ServerStartError,
    UnreachableHomeError,
)
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.postgres import PostgresServer

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the user")


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="mportal-pg-", dir="/tmp") as directory:
        Path(directory).chmod(0o711)
        made = Home(Path(directory) / "home")
        made.make()
        yield made


@pytest.fixture
def server(home: Home) -> Iterator[PostgresServer]:
    made = new_server(home)
    yield made
    made.stop()


def new_server(home: Home) -> PostgresServer:
    account = server_account(home.postgres.data.parent, home.number)
    return PostgresServer(home.postgres, account, durable=False)


def test_data_lasts_from_start_to_start(home, server):
    server.start()
    with psycopg.connect(home.postgres.url()) as connection:
        connection.execute("CREATE TABLE kept (a int)")
    server.stop()
    server.start()
    with psycopg.connect(home.postgres.url()) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_no_user_gets_in_without_the_password(home, server):
    server.start()
    wrong = home.postgres.url().replace(home.postgres.password, "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)


def test_the_portals_role_is_no_superuser(home, server):
    server.start()
    with psycopg.connect(home.postgres.url()) as connection:
        row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        assert row.fetchone() == (False,)


def test_it_listens_on_no_port(home, server):
    server.start()
    with psycopg.connect(home.postgres.url()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    mode = stat.S_IMODE(home.postgres.sockets.stat().st_mode)
    assert mode == 0o700


def test_after_a_kill_it_starts_on_the_same_data(home, server):
    process = server.start()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    server.start()
    psycopg.connect(home.postgres.url()).close()


def test_a_server_left_running_is_ended_first(home, server):
    left_over = new_server(home).start()
    server.start()
    assert left_over.wait(10) == 0
    psycopg.connect(home.postgres.url()).close()


def test_a_first_start_that_was_interrupted_is_begun_again(home, server):
    unfinished = home.postgres.data.parent / "unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "half").write_text("")
    server.start()
    assert not unfinished.exists()


def test_data_of_another_major_version_is_refused_with_the_way_out(home, server):
    server.start()
    server.stop()
    (home.postgres.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(DataVersionError, match=r"PostgreSQL 17.*pg_dump"):
        server.start()


def test_a_server_that_does_not_start_shows_the_end_of_its_log(home, server):
    server.start()
    server.stop()
    (home.postgres.data / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(ServerStartError, match="no_such_setting"):
        server.start()


@as_root
def test_a_home_that_its_account_can_not_reach_is_named(home):
    home.path.parent.chmod(0o700)
    with pytest.raises(UnreachableHomeError, match="MPORTAL_HOME"):
        new_server(home).start()


@as_root
def test_binaries_that_its_account_can_not_reach_are_copied(home, monkeypatch):
    account = Account(SERVER_IDS[5], SERVER_IDS[5])
    can_run = binaries._can_run
    closed = binaries._package_dir(binaries.POSTGRES_WHEEL).parent

    def closed_to_it(binary: Path, who: Account) -> bool:
        return not binary.is_relative_to(closed) and can_run(binary, who)

    monkeypatch.setattr(binaries, "_can_run", closed_to_it)
    copy = binaries.postgres_bin(account, home.binaries)
    assert copy.is_relative_to(home.binaries)
    assert can_run(copy / "postgres", account)
    assert can_run(copy / "initdb", account)
    assert binaries.postgres_bin(account, home.binaries) == copy


def test_binaries_within_reach_are_run_where_they_are(home):
    assert not binaries.postgres_bin(ourselves(), home.binaries).is_relative_to(home.path)
