"""An empty PostgreSQL and an empty Redis, started as the portal embeds them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from monarch_portal.embedded.account import server_account
from monarch_portal.embedded.memory import pss_bytes, with_descendants
from monarch_portal.embedded.postgres import PostgresServer
from monarch_portal.embedded.private_files import secret_in
from monarch_portal.embedded.redis_server import RedisServer
from monarch_portal.embedded.server_paths import PostgresPaths, RedisPaths


@dataclass(frozen=True, slots=True)
class BareServers:
    """Two running servers; `root` is a directory that is removed with them."""

    root: Path
    postgres: PostgresPaths
    redis: RedisPaths
    pids: tuple[int, ...]

    def memory_mb(self) -> float:
        """Return the proportional set size of both servers and their children."""
        return sum(map(pss_bytes, with_descendants(self.pids))) / 1e6


@contextmanager
def running(*, durable: bool = True) -> Iterator[BareServers]:
    """Start both servers, and remove them and their data at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="mportal-bench-", dir="/tmp") as folder,
        ExitStack() as up,
    ):
        root = Path(folder)
        # The servers' account must get through.
        root.chmod(0o711)
        postgres, redis = _paths(root)
        secret_in(postgres.secret)
        account = server_account(postgres.data.parent, os.getpid())
        pids = []
        for server in (
            PostgresServer(postgres, account, durable=durable),
            RedisServer(redis, account),
        ):
            up.callback(server.stop)
            pids.append(server.start().pid)
        yield BareServers(root, postgres, redis, tuple(pids))


def _paths(root: Path) -> tuple[PostgresPaths, RedisPaths]:
    log, copies = root / "server.log", root / "binaries"
    secrets = (root / "postgres-password", root / "postgres-admin-password")
    data = root / "postgres" / "data"
    return (
        PostgresPaths(data, root / "pg", log, *secrets, copies),
        RedisPaths(root / "redis", log, copies),
    )
