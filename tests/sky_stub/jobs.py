"""The jobs of a cluster: directories with the specification, the result and the log of each."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.sky_stub import processes
from tests.sky_stub.cloud import Cloud, Row
from tests.sky_stub.disk import locked, read_json, write_json

FINAL = frozenset({"SUCCEEDED", "FAILED", "FAILED_SETUP", "FAILED_DRIVER", "CANCELLED"})
DRIVER = Path(__file__).with_name("driver.py")
# A job whose process never began, as when the server died between the two.
UNBORN_S = 5.0
USER = "stub"


class Jobs:
    """The jobs of one cluster."""

    def __init__(self, cloud: Cloud, cluster: str) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._folder = cloud.folder(cluster) / "jobs"

    def submit(self, row: Row, task: dict[str, Any]) -> int:
        """Start a job on the cluster's first nodes and return its number."""
        with locked(self._cloud.state / "locks" / f"{self._cluster}.jobs"):
            number = max(self.numbers(), default=0) + 1
            folder = self._folder / str(number)
            folder.mkdir(parents=True)
        name = task.get("name") or "-"
        write_json(folder / "status.json", {"status": "PENDING", "submitted_at": time.time()})
        write_json(folder / "job.json", self._requested(row, task, number))
        self._cloud.note("job_submitted", row, job_name=name, job_id=number)
        self._begin(folder, row)
        return number

    def numbers(self) -> list[int]:
        """List the numbers of all jobs, oldest first."""
        return sorted(int(path.name) for path in self._folder.glob("*") if path.name.isdigit())

    def record(self, number: int) -> dict[str, Any] | None:
        """Return a job's specification with its status and times; None if there is no such job."""
        folder = self._folder / str(number)
        submitted, now = read_json(folder / "job.json"), read_json(folder / "status.json")
        if submitted is None or now is None:
            return None
        if now["status"] not in FINAL and not _is_driven(now):
            # Asked once more: it may have ended properly just now.
            now = read_json(folder / "status.json")
            if now["status"] not in FINAL:
                now = {**now, "status": "FAILED_DRIVER"}
        return {**submitted, **now, "folder": str(folder)}

    def records(self) -> list[dict[str, Any]]:
        """List the records of all jobs, newest first."""
        found = (self.record(number) for number in reversed(self.numbers()))
        return [record for record in found if record is not None]

    def cancel(self, numbers: Sequence[int] | None) -> None:
        """End these jobs, or all; unknown and ended ones are no error. Waits for their end."""
        records = [each for each in self.records() if each["status"] not in FINAL]
        chosen = [each for each in records if numbers is None or each["id"] in numbers]
        for each in chosen:
            (Path(each["folder"]) / "cancelled").touch()
            if "pid" in each:
                processes.send({each["pid"]}, signal.SIGTERM)
        deadline = time.monotonic() + self._cloud.plan["cancel_grace_s"] + 5
        while time.monotonic() < deadline:
            if all(self.is_over(each["id"]) for each in chosen):
                return
            time.sleep(0.02)

    def is_over(self, number: int) -> bool:
        """Whether a job has ended."""
        record = self.record(number)
        return record is None or record["status"] in FINAL

    def idle_since(self, since: float) -> float | None:
        """Return the time since which no job has run; None while one does.

        `since` is returned if there has been no job.
        """
        records = self.records()
        if any(each["status"] not in FINAL for each in records):
            return None
        return max([since, *(each.get("end_at") or 0 for each in records)])

    def _requested(self, row: Row, task: dict[str, Any], number: int) -> dict[str, Any]:
        count = int(task.get("num_nodes") or 1)
        homes = [str(self._cloud.node(row["name"], index)) for index in range(count)]
        return {
            "id": number,
            "name": task.get("name") or "-",
            "cluster": row["name"],
            "state": str(self._cloud.state),
            "hash": row["hash"],
            "homes": homes,
            "addresses": row["addresses"][:count],
            "cluster_nodes": row["num_nodes"],
            "environment": _environment(row, task, number),
            "setup": task.get("setup"),
            "run": task.get("run"),
            "own": self._cloud.plan["environment"],
            "interleave": self._cloud.plan["interleave"],
            "grace_s": self._cloud.plan["cancel_grace_s"],
        }

    def _begin(self, folder: Path, row: Row) -> None:
        """Start the process that runs the job; it survives the server."""
        with (folder / "driver.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(DRIVER), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    "PATH": os.environ["PATH"],
                    # It lives and dies with the head node.
                    processes.NODE_MARK: str(self._cloud.node(row["name"], 0)),
                    processes.JOB_MARK: str(folder),
                },
            )
        threading.Thread(target=process.wait, daemon=True).start()


def sync_workdir(cloud: Cloud, row: Row, source: Path) -> None:
    """Bring a folder to every node. As with rsync, what was there before stays."""
    for index in range(row["num_nodes"]):
        target = cloud.node(row["name"], index) / "sky_workdir"
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def _is_driven(now: dict[str, Any]) -> bool:
    if "pid" in now:
        return processes.lives(now["pid"], now["began"])
    return bool(time.time() - now["submitted_at"] < UNBORN_S)


def _environment(row: Row, task: dict[str, Any], number: int) -> dict[str, str]:
    """Return the variables that SkyPilot gives to every node of a job."""
    count = int(task.get("num_nodes") or 1)
    cloud, region, zone = [*row["infra"].split("/"), "", ""][:3]
    place = {"cluster_name": row["name"], "cloud": cloud, "region": region, "zone": zone}
    given = {**(task.get("envs") or {}), **(task.get("secrets") or {})}
    return {
        **{name: str(value) for name, value in given.items()},
        "SKYPILOT_TASK_ID": f"sky-{row['launched_at']}-{number}_{row['name']}",
        "SKYPILOT_INTERNAL_JOB_ID": str(number),
        "SKYPILOT_CLUSTER_INFO": json.dumps(place),
        "SKYPILOT_USER": USER,
        "SKYPILOT_NUM_NODES": str(count),
        "SKYPILOT_NODE_IPS": "\n".join(row["addresses"][:count]),
        "SKYPILOT_NUM_GPUS_PER_NODE": "0",
    }
