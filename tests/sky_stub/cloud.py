"""The clusters: rows on disk, their nodes' folders and addresses, what they cost, their ends.

Needs no server: a test may kill a node or preempt a cluster whether one runs or not.
"""

from __future__ import annotations

import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.sky_stub import processes
from tests.sky_stub.disk import locked, read_json, write_json
from tests.sky_stub.errors import no_such_cluster, not_up
from tests.sky_stub.plan import Plan
from tests.sky_stub.witness import Witness

Row = dict[str, Any]
# Above what the local backend leases.
FIRST_BLOCK, BLOCKS, FIRST_HOST = 160, 60, 10
# In the HOME of a node that is dead.
NO_POWER = ".no-power"


class Cloud:
    """All clusters below a folder of state."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.plan = Plan(state)
        self.witness = Witness(state)
        self._clusters = state / "clusters"
        self._clusters.mkdir(parents=True, exist_ok=True)

    def folder(self, name: str) -> Path:
        """Return the directory of a cluster."""
        return self._clusters / name

    def node(self, name: str, index: int) -> Path:
        """Return the HOME of a node."""
        return self.folder(name) / f"node{index}"

    def names(self) -> list[str]:
        """List every cluster that has a row."""
        return sorted(path.parent.name for path in self._clusters.glob("*/cluster.json"))

    def find(self, name: str) -> Row | None:
        """Return a cluster's row; None if there is none."""
        row: Row | None = read_json(self.folder(name) / "cluster.json")
        return row

    def get(self, name: str) -> Row:
        """Return a cluster's row. SkyError if there is none."""
        row = self.find(name)
        if row is None:
            raise no_such_cluster(name)
        return row

    @contextmanager
    def change(self, name: str) -> Iterator[Row]:
        """Lock and yield a cluster's row; store it when the block ends.

        SkyError if there is none.
        """
        with locked(self.state / "locks" / name):
            row = self.get(name)
            yield row
            write_json(self.folder(name) / "cluster.json", row)

    def begin(self, name: str, wanted: Row) -> Row:
        """Take nodes for a cluster that is not up: from now on they cost.

        `wanted` has num_nodes, infra, resources, use_spot, usd_per_hour (a node) and job_name. A
        cluster whose launch broke off keeps its nodes.
        """
        with locked(self.state / "locks" / name):
            row = self.find(name)
            if row is None:
                row = {
                    **wanted,
                    "name": name,
                    "hash": str(uuid4()),
                    "addresses": self._addresses(name, wanted["num_nodes"]),
                    "autostop": -1,
                    "to_down": False,
                    "dead_nodes": [],
                }
            row |= {"status": "INIT", "interrupted": False, "launched_at": int(time.time())}
            for index in range(row["num_nodes"]):
                (self.node(name, index) / "sky_workdir").mkdir(parents=True, exist_ok=True)
            write_json(self.folder(name) / "cluster.json", row)
        self._open_bill(row)
        self.note("launch_begun", row, job_name=wanted["job_name"], infra=row["infra"])
        return row

    def come_up(self, name: str) -> Row:
        """Mark a cluster as UP with all its nodes powered, and return its row."""
        with self.change(name) as row:
            row |= {"status": "UP", "dead_nodes": [], "interrupted": False, "was_up": True}
            for index in range(row["num_nodes"]):
                (self.node(name, index) / NO_POWER).unlink(missing_ok=True)
        self.note("up", row)
        return row

    def interrupt(self, name: str) -> None:
        """Record that a launch broke off: the row stays, the nodes cost, nothing more happens."""
        with self.change(name) as row:
            row["interrupted"] = True
        self.note("launch_interrupted", row)

    def stop(self, name: str) -> None:
        """Stop the nodes; their disks stay."""
        with self.change(name) as row:
            processes.end(processes.NODE_MARK, self.folder(name))
            row["status"] = "STOPPED"
        self._close_bill(row)
        self.note("stopped", row)

    def start(self, name: str) -> Row:
        """Start the stopped nodes again."""
        row = self.get(name)
        if row["status"] == "STOPPED":
            self._open_bill(row)
            self.note("started", row)
        return self.come_up(name)

    def remove(self, name: str, why: str = "down") -> None:
        """End the nodes and remove the cluster. SkyError if there is none."""
        with locked(self.state / "locks" / name):
            row = self.get(name)
            processes.end(processes.NODE_MARK, self.folder(name))
            # The row is removed last: a removal that is cut off here can be requested again.
            for path in self.folder(name).iterdir():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
            (self.folder(name) / "cluster.json").unlink()
            shutil.rmtree(self.folder(name), ignore_errors=True)
        self._close_bill(row)
        self.note("gone", row, why=why)

    def kill_node(self, name: str, index: int) -> None:
        """Simulate a power failure of a node: all its processes end, its disk keeps its content."""
        # Whatever a driver starts there from now on ends at once.
        (self.node(name, index) / NO_POWER).touch()
        processes.end(processes.NODE_MARK, self.node(name, index))
        with self.change(name) as row:
            row["dead_nodes"].append(index)
            row["status"] = "INIT"
        self.note("node_killed", row, node=index)

    def preempt(self, name: str) -> None:
        """Take all nodes of a cluster away, as the provider does.

        The plan decides what its row looks like then.
        """
        row = self.get(name)
        self.note("preempted", row)
        if self.plan["preempted_looks"] == "gone":
            self.remove(name, why="preempted")
            return
        processes.end(processes.NODE_MARK, self.folder(name))
        with self.change(name) as row:
            row |= {"status": "INIT", "dead_nodes": list(range(row["num_nodes"]))}
        self._close_bill(row)

    def bills(self) -> list[Row]:
        """Return what each incarnation has cost until now, including those that still exist."""
        return [bill_now(read_json(path)) for path in sorted(self.state.glob("bills/*.json"))]

    def note(self, event: str, row: Row, **more: Any) -> None:
        """Record an event of a cluster with the witness."""
        self.witness.note(event, cluster=row["name"], hash=row["hash"], **more)

    def _addresses(self, name: str, count: int) -> list[str]:
        """Choose addresses of this machine that no other cluster here has."""
        taken = {row["addresses"][0] for row in map(self.find, self.names()) if row}
        number = zlib.crc32(f"{self.state}/{name}".encode())
        while True:
            place = number % (BLOCKS * 250)
            start = f"127.{FIRST_BLOCK + place // 250}.{place % 250 + 1}"
            if f"{start}.{FIRST_HOST}" not in taken:
                return [f"{start}.{FIRST_HOST + index}" for index in range(count)]
            number += 1

    def _open_bill(self, row: Row) -> None:
        path = self.state / "bills" / f"{row['hash']}.json"
        bill = read_json(path) or {
            **{key: row[key] for key in ("name", "hash", "num_nodes", "infra", "resources")},
            **{key: row[key] for key in ("use_spot", "usd_per_hour", "launched_at")},
            "intervals": [],
        }
        if not bill["intervals"] or bill["intervals"][-1][1] is not None:
            bill["intervals"].append([time.time(), None])
        write_json(path, bill)

    def _close_bill(self, row: Row) -> None:
        path = self.state / "bills" / f"{row['hash']}.json"
        bill = read_json(path)
        if bill["intervals"][-1][1] is None:
            bill["intervals"][-1][1] = time.time()
            write_json(path, bill)


def bill_now(bill: Row) -> Row:
    """Return a bill with its seconds and dollars until now.

    They are charged by wall time, as SkyPilot does.
    """
    now = time.time()
    seconds = sum((end or now) - start for start, end in bill["intervals"])
    usd = seconds / 3600 * bill["usd_per_hour"] * bill["num_nodes"]
    return {**bill, "duration_s": seconds, "usd": usd}


def need_up(cloud: Cloud, name: str, doing: str) -> Row:
    """Return the row of a cluster whose nodes can be reached. SkyError for others."""
    row = cloud.get(name)
    if row["status"] != "UP" or row["dead_nodes"]:
        raise not_up(name, row["status"], doing)
    return row
