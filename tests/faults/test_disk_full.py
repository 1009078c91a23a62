"""A portal whose data directory fills up, to the reserve and then to the last byte."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.faults.small_disk import MIB, SmallDisk
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"
SIZE_MB = 700
RESERVE_MB = 34  # of a small disk a twentieth must do
COUNTING = """
name: counting
run: |
  trap 'over=1' USR1
  echo "pid $$" >&2
  i=0
  while [ -z "$over" ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done
  echo "last $i"
  exit 7
"""
pytestmark = [pytest.mark.root("it makes a disk of its own"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalProcess]:
    made = PortalProcess()
    disk = SmallDisk(made.home.path, SIZE_MB)
    made.disk = disk
    try:
        made.start()
        made.wait_until_ready()
        yield made
    finally:
        disk.empty()
        made.close()
        disk.close()
        made.close()


class Job:
    """A job that counts until a file appears."""

    def __init__(self, portal: PortalProcess, name: str) -> None:
        self.portal = portal
        file = portal.root / f"{name}.yaml"
        file.write_text(COUNTING)
        submitted = portal.mportal("submit", "-f", str(file), "-d", "-q")
        assert submitted.returncode == 0, submitted.stderr
        self.id = int(re.findall(r"\d+", submitted.stdout)[0])
        assert eventually(lambda: len(self.texts()) > 5, timeout_s=60), portal.logs()
        self.pid = int(self.texts("stderr")[0].removeprefix("pid "))

    def get(self) -> dict:
        with self.portal.client() as client:
            return client.get(f"{JOBS}/{self.id}").json()

    def texts(self, stream: str = "stdout") -> list[str]:
        """Return all lines of a stream, from the first."""
        found, query = [], {"limit": 1000, "stream": stream}
        with self.portal.client() as client:
            while True:
                answer = client.get(f"{JOBS}/{self.id}/logs", params=query).json()
                found += [line["text"] for line in answer["results"]]
                if not (after := answer.get("next")) or not answer["results"]:
                    return found
                query = {**query, "after": after}

    def finish(self) -> None:
        """End the job without its file, for which there may be no space."""
        os.kill(self.pid, signal.SIGUSR1)

    def has_ended(self) -> bool:
        try:
            return bool(self.get().get("is_final"))
        except (httpx.HTTPError, ValueError):
            return False


def use_up_the_write_ahead_log(portal: PortalProcess) -> None:
    """Make PostgreSQL write until it finds no space: the worst moment for a failure."""
    portal.disk.leave(0)
    with suppress(psycopg.Error), psycopg.connect(portal.home.postgres.admin_url) as admin:
        admin.autocommit = True
        for _ in range(200):
            admin.execute("SELECT pg_logical_emit_message(false, '', repeat('x', 4000000))")
            portal.disk.leave(0)


def test_below_the_reserve_new_work_is_refused_and_running_work_goes_on(portal):
    job = Job(portal, "reserve")
    portal.disk.leave((RESERVE_MB - 4) * MIB)

    refused = portal.mportal("submit", "-f", str(portal.root / "reserve.yaml"), "-d")
    assert refused.returncode == 125
    assert "disk is nearly full" in refused.stderr
    with portal.client() as client:
        for path, content, kind in (
            ("jobs", "run: true\n", "application/yaml"),
            (f"jobs/{job.id}/actions/rerun", "", "application/json"),
            ("uploads", b"x", "application/gzip"),
        ):
            answer = client.post(
                f"/api/v1/projects/default/{path}", content=content, headers={"Content-Type": kind}
            )
            assert (answer.status_code, answer.json()["code"]) == (507, "storage_full"), path
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["disk"]) == (200, "nearly full")

    seen = len(job.texts())
    assert eventually(lambda: len(job.texts()) > seen + 20, timeout_s=30)
    job.finish()
    assert eventually(job.has_ended, timeout_s=30), portal.logs()
    ended, texts = job.get(), job.texts()
    assert (ended["status"], ended["exit_code"]) == ("FAILED", 7)
    assert texts == [f"line {n + 1}" for n in range(len(texts) - 1)] + [f"last {len(texts) - 1}"]

    portal.disk.empty()
    assert Job(portal, "afterwards").get()["status"] == "RUNNING"


def test_without_a_byte_left_jobs_go_on_and_all_is_well_when_there_is_room_again(portal):
    job = Job(portal, "last-byte")
    before = portal.pids()
    acknowledged = job.texts()
    portal.disk.leave(0)
    use_up_the_write_ahead_log(portal)
    assert eventually(lambda: not portal._is_ready(), timeout_s=30)
    job.finish()
    assert eventually(lambda: not Path(f"/proc/{job.pid}").exists(), timeout_s=30)
    portal.disk.empty()
    assert eventually(job.has_ended, timeout_s=60), portal.logs()
    ended, texts = job.get(), job.texts()
    assert (ended["status"], ended["exit_code"], ended["attempt"]) == ("FAILED", 7, 1)
    assert texts[: len(acknowledged)] == acknowledged
    assert texts == [f"line {n + 1}" for n in range(len(texts) - 1)] + [f"last {len(texts) - 1}"]
    assert Job(portal, "well-again").get()["status"] == "RUNNING"
    assert eventually(lambda: set(portal.pids()) == set(before), timeout_s=40)
    assert portal.pids()["supervisor"] == before["supervisor"]
    assert eventually(portal._is_ready, timeout_s=30)
