"""Autostop: clusters that have been idle are stopped or terminated."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import NoReturn

from tests.sky_stub.cloud import Cloud
from tests.sky_stub.errors import SkyError
from tests.sky_stub.jobs import Jobs

LOOK_S = 0.2


def watch(cloud: Cloud) -> NoReturn:
    """Check all clusters repeatedly."""
    while True:
        for name in cloud.names():
            # It may go away while we look.
            with suppress(SkyError, OSError):
                _look(cloud, name)
        time.sleep(LOOK_S)


def _look(cloud: Cloud, name: str) -> None:
    row = cloud.get(name)
    if row["status"] != "UP" or row["autostop"] < 0:
        return
    idle_since = Jobs(cloud, name).idle_since(row["autostop_at"])
    if idle_since is None or time.time() - idle_since < row["autostop"] * cloud.plan["minute_s"]:
        return
    if row["to_down"]:
        cloud.remove(name, why="autodown")
    else:
        cloud.stop(name)
