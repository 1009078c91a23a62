"""A whole portal for tests: all its processes, on a home of its own below /tmp."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from jobs.backends.local.backend import LocalBackend, LocalOptions
from jobs.backends.registry import LEASES_OF_ROOT, open_upload
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.process_table import living
from tests.waiting import eventually

CHECKOUT = Path(__file__).resolve().parent.parent
# What would make the portal another one than that of its home.
FOREIGN = ("MPORTAL_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_", "ALLOWED_HOSTS")


class PortalProcess:
    """The portal on one temporary home. `close` ends it and removes the home."""

    def __init__(self, **environment: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mportal-acc-", dir="/tmp"))
        self.root.chmod(0o711)  # as root, servers and jobs pass through under ids of their own
        self.home = Home(self.root / "home")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        ci_mark = {key: os.environ[key] for key in ("MPORTAL_CI_RUN",) if key in os.environ}
        self.environment = {**kept, **ci_mark, "MPORTAL_HOME": str(self.home.path), **environment}

    def run(self, *verb: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py portal <verb>`, without the detour."""
        argv = [sys.executable, "-m", "monarch_portal.embedded", *verb]
        return self._run(argv)

    def start(self) -> str:
        """Start the portal in the background and return its output."""
        done = self.run("start")
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        return done.stdout

    def stop(self) -> str:
        """End the portal and return its output."""
        done = self.run("stop")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def mportal(
        self, *arguments: str, cwd: Path = CHECKOUT, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line as the portal's first user."""
        mportal = str(Path(sys.executable).with_name("mportal"))
        # The project is named, because other tests on this portal make projects of their own.
        account = {
            "MPORTAL_URL": self.url,
            "MPORTAL_TOKEN": self.token,
            "MPORTAL_PROJECT": "default",
        }
        return self._run([mportal, *arguments], cwd, **{**account, **environment})

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a `manage.py` command on this portal's data."""
        return self._run([sys.executable, str(CHECKOUT / "manage.py"), *arguments])

    @property
    def url(self) -> str:
        """Return the address at which it listens."""
        return self.home.url

    @property
    def token(self) -> str:
        """The first user's API token."""
        return self.home.admin_token_file.read_text().strip()

    def client(self) -> httpx.Client:
        """Return an HTTP client signed in as the first user."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)

    def status(self) -> dict[str, Any]:
        """Return address, processes and memory."""
        status: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return status

    def pids(self) -> dict[str, int]:
        """Return the portal's living processes by name."""
        return {record.name: record.pid for record in living(self.home.process_table)}

    def kill(self, *names: str) -> None:
        """Send SIGKILL to the processes named, or to all, supervisor included, at once."""
        for name, pid in self.pids().items():
            if not names or name in names:
                os.kill(pid, signal.SIGKILL)

    def wait_until_ready(self, timeout_s: float = 30) -> None:
        """Wait until web answers and has its database and Redis."""
        assert eventually(self._is_ready, timeout_s=timeout_s), self.logs()

    def logs(self) -> str:
        """Return the ends of all its logs, for a failed assertion."""
        files = sorted(self.home.logs.glob("*.log"))
        return "\n".join(f"== {file.name}\n{file.read_text()[-2000:]}" for file in files)

    def close(self) -> None:
        """End it and the jobs of its local backend, and remove its home."""
        self.run("stop")
        try:
            self._tear_down_clusters()
        finally:
            shutil.rmtree(self.root, ignore_errors=True)

    def _tear_down_clusters(self) -> None:
        """End the jobs that a failed test, or one that ends with a running job, leaves here.

        Their programs know no path of this home: killing the runners alone would leave them.
        """
        local = self.home.path / "local"
        leases = LEASES_OF_ROOT if os.geteuid() == 0 else local / "slots"
        options = LocalOptions(local, leases, nodes=0, portal_file=None)
        backend = LocalBackend(options, open_upload)
        for record in local.glob("*/cluster.json"):
            backend.tear_down(record.parent.name)

    def _run(
        self, argv: list[str], cwd: Path = CHECKOUT, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd=cwd,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2).is_success
        except httpx.TransportError:
            return False
