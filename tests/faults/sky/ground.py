"""A portal whose jobs run on the machines of a stand-in for SkyPilot's server."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from monarch_client.crash_points import VARIABLE
from tests.faults import victims
from tests.faults.cells import Cell
from tests.faults.ground import Ground
from tests.faults.held_points import HeldPoints
from tests.faults.sky.points import SkyPoints
from tests.faults.sky.remains import remains_of
from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess
from tests.waiting import eventually

INFRA = "slurm/stub/all"
RESOURCES = {"infra": INFRA}
CLUSTERS = "/api/v1/projects/default/clusters"
CHILD = b"monarch_client.skypilot.child"
_NEWEST = """
SELECT cluster.name, attempt.id FROM jobs_attempt AS attempt
JOIN jobs_cluster AS cluster ON cluster.id = attempt.cluster_id
WHERE attempt.job_id = %s ORDER BY attempt.number DESC LIMIT 1
"""


class SkyGround(Ground):
    """One portal, and the server that it queries; `carrier` is "push", "pull" or "auto"."""

    # A killed process takes its child with it; importing SkyPilot in another takes seconds.
    patience_s = 150.0
    # A termination that failed is repeated only after a pause.
    gone_in_s = 90.0

    def __init__(self, carrier: str, **environment: str) -> None:
        self.carrier = carrier
        self.stub: StubProcess
        super().__init__(
            MPORTAL_SKYPILOT="on",
            MPORTAL_SKYPILOT_CARRIER=carrier,
            MPORTAL_LOCAL_BACKEND="0",
            **environment,
        )

    def close(self) -> None:
        """End all of it."""
        super().close()
        self.stub.close()

    def make_ready(self) -> None:
        """Wait until every part runs again, and no fault is planned."""
        self.start_server()
        super().make_ready()

    def start_server(self) -> None:
        """Start SkyPilot's server, unless it runs."""
        if not self.stub.is_running:
            self.stub.start()

    def pids_of(self, cell: Cell, job: int | None) -> list[int]:
        """Find the victim's processes."""
        if cell.victim == "server":
            return [self.stub.pid]
        if cell.victim == "child":
            asks = "follower" if cell.point == "follow.read" else "worker"
            return self.children_of(asks)
        if cell.victim.startswith("node"):
            name, _ = self.newest(job or 0)
            node = self.stub.cloud.node(name, cell.rank)
            return sorted(processes.marked(processes.NODE_MARK, node))
        if cell.victim == "cluster":
            name, _ = self.newest(job or 0)
            return sorted(processes.marked(processes.NODE_MARK, self.stub.cloud.folder(name)))
        return super().pids_of(cell, job)

    def children_of(self, part: str) -> list[int]:
        """Wait for the processes that query SkyPilot for a part of the portal, and return them."""

        def found() -> list[int]:
            children = victims.children_of(self.portal.pids()[part])
            return [pid for pid in children if CHILD in victims.read(pid, "cmdline")]

        assert eventually(found, timeout_s=self.patience_s), f"{part} sends no request"
        return found()

    def newest(self, job: int) -> tuple[str, int]:
        """Return the cluster's name and the attempt's number, of the job's newest attempt."""
        with psycopg.connect(self.portal.home.postgres.url()) as database:
            row = database.execute(_NEWEST, [job]).fetchone()
        assert row is not None
        return str(row[0]), int(row[1])

    def node(self, job: int, rank: int) -> Any:
        """Return the runner's directory on a node of the job's newest attempt."""
        name, attempt = self.newest(job)
        return self.stub.cloud.node(name, rank) / ".mportal" / str(attempt)

    def release_kept(self) -> None:
        """Terminate every warm cluster."""
        with psycopg.connect(self.portal.home.postgres.url()) as database:
            rows = database.execute(
                "SELECT name FROM jobs_cluster WHERE status <> 'GONE' AND idle_since IS NOT NULL"
            ).fetchall()
        for (name,) in rows:
            self._until_answered(lambda name=name: self._take_down(name))

    def remains(self, job: int) -> list[str]:
        """Describe everything that is left of a job."""
        return remains_of(self.portal, self.stub, job)

    def report(self, job: int | None) -> str:
        """Collect what is needed to understand a failure."""
        reported = [str(event) for event in self.stub.witness.events()[-25:]]
        log = self.portal.home.path / "skypilot" / "client" / "calls.log"
        with suppress(FileNotFoundError):
            reported.append(log.read_text()[-3000:])
        return "\n".join([*reported, super().report(job)])

    def _take_down(self, name: str) -> bool | None:
        with self.portal.client() as client:
            answer = client.post(f"{CLUSTERS}/{name}/actions/down")
        # 409: it was terminated already.
        return answer.status_code in {202, 409} or None

    def _points_below(self, directory: Path) -> HeldPoints:
        self.stub = StubProcess(self.portal.root / "stub")
        self.portal.environment["MPORTAL_SKYPILOT_ENDPOINT"] = self.stub.url
        self.stub.plan(
            places=[{"infra": INFRA, "capacity": 16, "usd_per_hour": 1.0, "can_stop": True}],
            environment={VARIABLE: f"{directory}/rank-{{rank}}"},
        )
        return SkyPoints(directory, self.stub)
