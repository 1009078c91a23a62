"""A host vanishes with a process of the portal's: its locks are free within fifteen seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from monarch_portal.embedded import postgres as embedded_postgres
from monarch_portal.embedded.account import server_account
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.postgres import PostgresServer
from tests.portal_process import CHECKOUT
from tests.waiting import eventually

pytestmark = pytest.mark.root("it makes a network of its own")
FREE_S = 15
# 198.18.0.0/15 is for such tests: no real network uses it.
OURS, THEIRS = f"198.18.{os.getpid() % 250}.1", f"198.18.{os.getpid() % 250}.2"
SPACE = f"mpfault{os.getpid()}"
LINK = f"mpf{os.getpid()}"
# A process of the portal's in the middle of a transaction, with a lock.
HOLDER = """
import django, sys
django.setup()
from django.db import connection, transaction
with transaction.atomic(), connection.cursor() as cursor:
    cursor.execute("SELECT pg_advisory_xact_lock(42)")
    print("held", flush=True)
    sys.stdin.readline()
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def other_host() -> Iterator[str]:
    """Make a network namespace with a cable to us, in the role of another machine."""
    ip("netns", "add", SPACE)
    try:
        ip("link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", SPACE)
        ip("addr", "add", f"{OURS}/24", "dev", LINK)
        ip("link", "set", LINK, "up")
        ip("-n", SPACE, "addr", "add", f"{THEIRS}/24", "dev", "eth0")
        ip("-n", SPACE, "link", "set", "eth0", "up")
        yield SPACE
    finally:
        ip("netns", "del", SPACE)


@pytest.fixture
def server(other_host: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """Start a PostgreSQL that the other host can reach."""
    with tempfile.TemporaryDirectory(prefix="mportal-acc-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        home = Home(Path(folder) / "home")
        home.make()
        account = server_account(home.postgres.data.parent, home.number)
        server = PostgresServer(home.postgres, account)
        server.start()
        server.stop()
        with (home.postgres.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {THEIRS}/32 scram-sha-256\n")
        monkeypatch.setitem(embedded_postgres.SETTINGS, "listen_addresses", OURS)
        server.start()
        yield server
        server.stop()


def test_what_a_vanished_host_held_is_free_within_fifteen_seconds(
    server: PostgresServer, other_host: str
) -> None:
    home = server._paths.data.parent.parent
    url = server._paths.url()
    environment = {
        **os.environ,
        "MPORTAL_HOME": str(home),
        "DATABASE_URL": url.replace("@/", f"@{OURS}/").partition("?")[0],
        "REDIS_URL": "unix:///nowhere",
        "SECRET_KEY": "k" * 60,
        "DJANGO_SETTINGS_MODULE": "monarch_portal.settings",
    }
    holder = subprocess.Popen(
        ["ip", "netns", "exec", other_host, sys.executable, "-c", HOLDER],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with psycopg.connect(url, autocommit=True) as session:

            def is_free() -> bool:
                return session.execute("SELECT pg_try_advisory_lock(42)").fetchone()[0]

            assert not is_free()
            # The cable is pulled: no word of an end comes from the other side.
            ip("link", "set", LINK, "down")
            assert eventually(is_free, timeout_s=FREE_S)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
