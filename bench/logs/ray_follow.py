"""The same with Ray: jobs that print stamped lines, and followers of their logs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.logs import talk
from bench.logs.program import following
from bench.own_portal import CHECKOUT
from bench.ray_peer import Ray

START_LIMIT_S = 180.0
END_LIMIT_S = 30.0


class RayTalk:
    """Jobs of Ray's that print while the file `go` exists."""

    def __init__(self, ray: Ray, jobs: list[str], go: Path) -> None:
        self._ray = ray
        self._jobs = jobs
        self._go = go

    def followed_by_command(self) -> dict[str, Any]:
        """Measure one `ray job logs --follow`, as a user of Ray runs it."""
        command = [str(self._ray.environment / "bin" / "ray"), "job", "logs", "--follow"]
        with following([*command, self._jobs[0]], self._ray.variables) as follower:
            follower.wait_until_open()
            self._go.touch()
            return {**follower.seen(), "followers": 1}

    def followed(self, count: int) -> dict[str, Any]:
        """Measure `count` followers of Ray's own endpoint; `followers` is how many it served."""
        command = [sys.executable, "-m", "bench.logs.followers", "--of", "ray"]
        command += ["--url", self._ray.address, "--count", str(count), "--go", str(self._go)]
        done = subprocess.run(
            [*command, "--jobs", *self._jobs],
            cwd=CHECKOUT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@contextmanager
def talking(ray: Ray, count: int, lines_per_s: float) -> Iterator[RayTalk]:
    """Run `count` jobs, which together print `lines_per_s` from the creation of `go` on."""
    with (
        tempfile.TemporaryDirectory(prefix="ray-talk-", dir="/tmp") as folder,
        httpx.Client(base_url=ray.address, timeout=60) as client,
    ):
        go = Path(folder) / "go"
        run = f"exec {sys.executable} {talk.__file__} {go} {lines_per_s / count}"
        jobs = []
        try:
            for _ in range(count):
                answer = client.post("/api/jobs/", json={"entrypoint": run}).raise_for_status()
                jobs.append(answer.json()["submission_id"])
            _wait_for(client, jobs, {"RUNNING"}, START_LIMIT_S)
            yield RayTalk(ray, jobs, go)
        finally:
            go.unlink(missing_ok=True)
            go.with_name("go.end").touch()
            _wait_for(client, jobs, {"SUCCEEDED", "FAILED", "STOPPED"}, END_LIMIT_S)


def _wait_for(client: httpx.Client, jobs: list[str], wanted: set[str], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    for job in jobs:
        while (status := client.get(f"/api/jobs/{job}").json()["status"]) not in wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{job} is {status}, not {wanted}")
            time.sleep(0.2)
