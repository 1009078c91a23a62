"""A whole portal on the rig, with a SkyPilot server and a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from monarch_client.sync.packing import pack
from tests.cluster.rig import places
from tests.cluster.rig.machine import Rig, WayToPortal
from tests.cluster.rig.skypilot import SLURM_CLUSTER, prepare_catalogue
from tests.portal_process import PortalProcess
from tests.sky_stub.process import free_port
from tests.waiting import eventually

SERVER_START_S = 150.0
JOB_S = 240.0
FINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})
PROJECT = "/api/v1/projects/default"
JOBS = f"{PROJECT}/jobs"
# For a `run` on two nodes: rank 0 goes on when rank 1, which ends here, has done its part. A rank
# that fails ends the others, wherever they are.
AFTER_THE_OTHER_RANK = """
if [ "$SKYPILOT_NODE_RANK" = 1 ]; then
    head=$(echo "$SKYPILOT_NODE_IPS" | head -n 1)
    until (echo done > "/dev/tcp/$head/24999") 2> /dev/null; do sleep 0.2; done
    exit 0
fi
python3 -c 'import socket; socket.create_server(("0.0.0.0", 24999)).accept()'
"""


class SkyPilotPortal(PortalProcess):
    """A portal with SkyPilot's server, as tests use it."""

    def start(self) -> str:
        """Start it, add the rig as an administrator does, and wait until SkyPilot answers."""
        result = super().start()
        login = ["--host", places.HERE, "--port", str(places.SSH_PORT), "--user", "root"]
        key = ["--key", str(places.LOGIN_KEY)]
        added = self.mportal("admin", "cloud", "add", "slurm", SLURM_CLUSTER, *login, *key)
        assert added.returncode == 0, added.stdout + added.stderr
        assert eventually(self._has_skypilot, timeout_s=SERVER_START_S), self.logs()
        return result

    def submit(self, **spec: Any) -> int:
        """Submit a job on the rig and return its number."""
        with self.client() as client:
            answer = client.post(JOBS, json={"spec": spec})
        assert answer.status_code == 201, answer.text
        return int(answer.json()["id"])

    def cancel(self, number: int) -> None:
        """Cancel a job."""
        with self.client() as client:
            assert client.post(f"{JOBS}/{number}/actions/cancel").is_success

    def job(self, number: int) -> dict[str, Any]:
        """Get a job from the API."""
        with self.client() as client:
            found: dict[str, Any] = client.get(f"{JOBS}/{number}").json()
        return found

    def attempts(self, number: int) -> list[dict[str, Any]]:
        """List a job's attempts, the first one first."""
        with self.client() as client:
            found = client.get(f"{JOBS}/{number}/attempts").json()
        return sorted(found["results"], key=lambda row: row["number"])

    def meshes(self, number: int) -> list[dict[str, Any]]:
        """List the hosts of a job's meshes, as last reported."""
        with self.client() as client:
            found: list[dict[str, Any]] = client.get(f"{JOBS}/{number}/mesh").json()["hosts"]
        return found

    def clusters(self) -> dict[str, dict[str, Any]]:
        """Return the project's clusters that exist, by name."""
        with self.client() as client:
            found = client.get(f"{PROJECT}/clusters").json()
        return {row["name"]: row for row in found["results"]}

    def take_down(self, cluster: str) -> None:
        """Terminate a warm cluster."""
        with self.client() as client:
            answer = client.post(f"{PROJECT}/clusters/{cluster}/actions/down")
        assert answer.is_success, answer.text

    def plan(self, **spec: Any) -> dict[str, Any]:
        """Return where a job could run and for how much, once SkyPilot has answered."""
        found: dict[str, Any] = {}

        def is_answered() -> bool:
            with self.client() as client:
                answer = client.post(f"{PROJECT}/plan", json={"spec": spec})
            assert answer.is_success, answer.text
            found.update(answer.json())
            return not found["is_pending"]

        assert eventually(is_answered, timeout_s=60), found
        return found

    def billed(self, cluster: str) -> Decimal:
        """Return what SkyPilot's own report charges for a cluster, US$, rounded to millionths.

        The portal rounds the same way. The report counts with binary fractions: 0.00224 comes as
        0.0022400000000000002.
        """
        server = self._server()
        home = self.home.skypilot.client_home
        caller = SkyCaller(CallerOptions(home, server["endpoint"], server["token"]))
        try:
            report = caller.call("cost_report", {"days": 1}, 60)
        finally:
            caller.close()
        charged = (Decimal(str(row["usd"])) for row in report if row["name"] == cluster)
        return sum(charged, Decimal(0)).quantize(Decimal("0.000001"))

    def over_ssh(self, login: str, command: str, home: Path) -> str:
        """Return what `command` prints on a node after a user of the SkyPilot server has logged in.

        `login` is the command that the portal shows; `home` is the home directory of the account,
        where ssh looks.
        """
        server = self._server()
        user = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "SKYPILOT_API_SERVER_ENDPOINT": server["endpoint"],
            "SKYPILOT_SERVICE_ACCOUNT_TOKEN": server["token"] or "",
        }
        [_, host] = login.split()
        known = ["sky", "status", host.partition("-worker")[0]]
        subprocess.run(known, env=user, check=True, capture_output=True, timeout=60)
        result = subprocess.run(
            ["ssh", host, command],
            env=user,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    def upload(self, folder: Path) -> str:
        """Upload a folder to the portal and return its reference."""
        with tempfile.TemporaryDirectory() as scratch:
            archive = Path(scratch) / "folder.tar.gz"
            pack(folder, archive)
            with self.client() as client:
                answer = client.post(
                    f"{PROJECT}/uploads",
                    content=archive.read_bytes(),
                    headers={"Content-Type": "application/gzip"},
                )
        assert answer.is_success, answer.text
        return f"upload:{answer.json()['digest']}"

    def set_secret(self, name: str, value: str) -> None:
        """Give the project a secret."""
        with self.client() as client:
            answer = client.put(f"{PROJECT}/secrets/{name}", json={"value": value})
        assert answer.is_success, answer.text

    def log(self, number: int) -> str:
        """Return a job's whole log as text."""
        with self.client() as client:
            return client.get(f"{JOBS}/{number}/logs/download").text

    def wait_for(self, number: int, *statuses: str, timeout_s: float = JOB_S) -> dict[str, Any]:
        """Wait until the job has one of `statuses` and return it; another final status fails."""
        wanted = set(statuses) or FINAL
        return self.wait_until(number, lambda job: job["status"] in wanted, timeout_s)

    def wait_until(
        self, number: int, is_so: Callable[[dict[str, Any]], bool], timeout_s: float = JOB_S
    ) -> dict[str, Any]:
        """Wait until `is_so` is true of the job, and return the job."""
        begin = time.monotonic()
        while not is_so(job := self.job(number)):
            waited = time.monotonic() - begin
            story = (
                f"{job['status']} after {waited:.0f} s: {job}\n{self.log(number)}\n{self.logs()}"
            )
            assert waited < timeout_s, story
            assert job["status"] not in FINAL, story
            time.sleep(0.3)
        return job

    def strike(self, name: str) -> None:
        """Kill one of the portal's processes, and wait until another does its work."""
        before = self.pids()[name]
        os.kill(before, signal.SIGKILL)
        assert eventually(lambda: self.pids().get(name, before) != before, timeout_s=60)
        self.wait_until_ready()

    def _server(self) -> dict[str, Any]:
        """Read the endpoint and the token of the portal's SkyPilot server."""
        found: dict[str, Any] = json.loads(self.home.skypilot.server_file.read_text())
        return found

    def _has_skypilot(self) -> bool:
        notes = {row["name"]: row["note"] for row in self.status()["processes"]}
        return notes.get("skypilot") == "ready"


class PortalOnRig(SkyPilotPortal):
    """A portal to which the rig's Slurm cluster was added."""

    def __init__(self, port: int, way: WayToPortal, **environment: str) -> None:
        super().__init__(MPORTAL_PORT=str(port), MPORTAL_SKYPILOT="auto", **environment)
        self.way = way
        prepare_catalogue(self.home.skypilot.home)


@contextmanager
def portal_on(rig: Rig, **environment: str) -> Iterator[PortalOnRig]:
    """Start a portal that the rig's nodes reach until its `way` is closed."""
    port = free_port()
    with ExitStack() as stack:
        way = stack.enter_context(rig.way_to(port))
        portal = PortalOnRig(port, way, MPORTAL_NODE_URL=way.url, **environment)
        stack.callback(portal.close)
        portal.start()
        yield portal
