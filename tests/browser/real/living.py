"""A running portal as these tests use it: its people, their browsers, their jobs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page

from tests.browser.visits import Visitors
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOBS = "/api/v1/projects/rl/jobs"
# Writes until a file appears in its folder, so that a test decides how long lines arrive.
COUNTING = """\
name: counting
run: |
  i=0
  while [ ! -e stop ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done
"""


class Living:
    """The portal and the jobs that were started on it."""

    def __init__(self, portal: PortalProcess, keys: dict[str, Any]) -> None:
        self.portal = portal
        self._keys = keys
        self._started: list[int] = []

    @property
    def url(self) -> str:
        """The address on which it listens."""
        return self.portal.url

    def cookie(self, name: str) -> dict[str, Any]:
        """Return the cookie that signs the person's browser in."""
        cookie: dict[str, Any] = self._keys[name]["cookie"]
        return cookie

    def client(self, name: str) -> httpx.Client:
        """Create an HTTP client with the person's token."""
        headers = {"Authorization": f"Bearer {self._keys[name]['token']}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)

    def submit(self, name: str, spec: str) -> int:
        """Submit a job as that person."""
        with self.client(name) as client:
            headers = {"Content-Type": "application/yaml"}
            answer = client.post(JOBS, content=spec, headers=headers)
        assert answer.status_code == 201, answer.text
        job_id: int = answer.json()["id"]
        self._started.append(job_id)
        return job_id

    def count(self, name: str) -> Counting:
        """Submit a job as that person; it writes one line after the other until it is stopped."""
        return Counting(self, self.submit(name, COUNTING))

    def folder(self, job_id: int) -> Path:
        """Return the working directory of a job's first node."""
        with self.client("ada") as client:
            attempt = client.get(f"{JOBS}/{job_id}/attempts").json()["results"][0]
        return self.portal.home.path / "local" / attempt["cluster_name"] / "rank-0" / "workdir"

    def job(self, job_id: int) -> dict[str, Any]:
        """Get the job from the REST API."""
        with self.client("ada") as client:
            answer: dict[str, Any] = client.get(f"{JOBS}/{job_id}").json()
        return answer

    def wait(self, job_id: int, *statuses: str) -> None:
        """Wait until the job has one of the statuses."""
        reached = eventually(lambda: self.job(job_id).get("status") in statuses, timeout_s=60)
        assert reached, (self.job(job_id), self.portal.logs())

    def texts(self, job_id: int) -> list[str]:
        """Return the job's own lines from the REST API."""
        found: list[str] = []
        query: dict[str, Any] = {"limit": 1000, "stream": "stdout"}
        with self.client("ada") as client:
            while True:
                page = client.get(f"{JOBS}/{job_id}/logs", params=query).json()
                found += [line["text"] for line in page["results"]]
                if not page["next"]:
                    return found
                query["after"] = page["next"]

    def end_jobs(self) -> None:
        """Cancel the jobs that still run."""
        with self.client("ada") as client:
            for job_id in self._started:
                with suppress(httpx.TransportError):
                    client.post(f"{JOBS}/{job_id}/actions/cancel")
        self._started.clear()


class Counting:
    """A job that writes `line 1`, `line 2` ... until it is stopped."""

    def __init__(self, living: Living, job_id: int) -> None:
        self._living = living
        self.id = job_id

    def stop(self) -> list[str]:
        """End it and return all that it wrote."""
        (self._living.folder(self.id) / "stop").touch()
        self._living.wait(self.id, "SUCCEEDED")
        texts = self._living.texts(self.id)
        assert texts == [f"line {n}" for n in range(1, len(texts) + 1)]
        return texts


class People:
    """Browsers of people, signed in."""

    def __init__(self, living: Living, visitors: Visitors) -> None:
        self._living = living
        self._visitors = visitors

    def __call__(self, name: str, **options: Any) -> Page:
        """Open a page of a user who is signed in."""
        cookie = self._living.cookie(name)
        return self._visitors.open(self._living.url, cookie=cookie, **options)

    def nobody(self, **options: Any) -> Page:
        """Open a page of a visitor who is not signed in."""
        return self._visitors.open(self._living.url, **options)
