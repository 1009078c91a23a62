"""A portal for one measurement: embedded, in a temporary directory, gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.measure import say
from monarch_client.rest.client import PortalClient
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.status import portal_status

CHECKOUT = Path(__file__).resolve().parent.parent
START_LIMIT_S = 120.0
STOP_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class OwnPortal:
    """A running portal, and its first user's client."""

    client: PortalClient
    project: str
    home: Home

    def pid_of(self, part: str) -> int:
        """Return the process id of one part of the portal."""
        return next(each.pid for each in portal_status(self.home).processes if each.name == part)

    def memory_mb(self) -> dict[str, float]:
        """Return the memory of each process in MB; PostgreSQL's includes its children."""
        return {part.name: part.memory_mb for part in portal_status(self.home).processes}


@contextmanager
def running(core: int | None = None, **environment: str) -> Iterator[OwnPortal]:
    """Start a portal, and stop and forget it at the end.

    `core`: all of its processes share this one. `environment` is added to what they get; `{home}`
    in it is the portal's directory.
    """
    with tempfile.TemporaryDirectory(prefix="mportal-bench-", dir="/tmp") as folder:
        # Servers and jobs of a portal that root starts run as other users, and must get through.
        Path(folder).chmod(0o711)
        home = Home(Path(folder) / "home")
        added = {key: value.format(home=home.path) for key, value in environment.items()}
        process = _start(home, Path(folder) / "start.log", added)
        if core is not None:
            # Nothing else of it is started yet: all that will be inherits this.
            os.sched_setaffinity(process.pid, {core})
        try:
            url, token = _wait_for(home, process)
            with PortalClient(url, token) as client:
                project = client.projects()[0].slug
                say(f"portal at {url}, project {project}")
                yield OwnPortal(client, project, home)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_LIMIT_S)


def _start(home: Home, log: Path, added: dict[str, str]) -> subprocess.Popen[bytes]:
    ours = ("MPORTAL_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "monarch_portal.embedded", "run"],
            cwd=CHECKOUT,
            env={**environment, **added, "MPORTAL_HOME": str(home.path)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_for(home: Home, process: subprocess.Popen[bytes]) -> tuple[str, str]:
    """Wait until the portal answers and return its address and the first user's token."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log = (home.path.parent / "start.log").read_text()
            raise RuntimeError(f"the portal ended with {process.returncode}:\n{log}")
        if home.url and home.admin_token_file.exists() and _is_ready(home.url):
            return home.url, home.admin_token_file.read_text().strip()
        time.sleep(0.1)
    raise TimeoutError("the portal does not answer")


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2).is_success
    except httpx.TransportError:
        return False
