"""The fleet on which loud jobs run while a part of it breaks, and how that is repaired."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobs.ground.seals import new_key
from monarch_portal.embedded.postgres import PostgresServer
from monarch_portal.embedded.redis_server import RedisServer
from tests.faults import loud_jobs
from tests.faults.fleet import Fleet
from tests.faults.network_cuts import NetworkCuts
from tests.faults.tcp_proxy import TcpProxy
from tests.faults.witness import Witness
from tests.sky_stub.process import StubProcess

CUTS = 2
# Where jobs run, by the way that their lines take.
INFRA = {"push": "local", "pull": "slurm/stub/all"}
CLUSTER = """
SELECT cluster.name FROM jobs_attempt AS attempt
JOIN jobs_cluster AS cluster ON cluster.id = attempt.cluster_id WHERE attempt.job_id = {}
"""


class LoudPlace:
    """A fleet, a server of SkyPilot's, and between them and the nodes a network that may break."""

    def __init__(self, folder: Path) -> None:
        self.cuts = NetworkCuts()
        self.witness = Witness()
        self.stub = StubProcess(folder / "stub")
        self.stub.plan(places=[{"infra": INFRA["pull"], "capacity": 4}])
        self._to_stub = TcpProxy(self._dial_stub, self.cuts.look)
        self.fleet = Fleet(
            1,
            MPORTAL_SECRET_KEYS=new_key(),
            MPORTAL_SKYPILOT="on",
            MPORTAL_SKYPILOT_CARRIER="pull",
            MPORTAL_SKYPILOT_ENDPOINT=f"http://127.0.0.1:{self._to_stub.port}",
        )
        # Before any connection is made.
        self.fleet.door.on_the_way = self.cuts.look

    def start(self) -> None:
        """Start all processes, and give the project its secret."""
        self.fleet.start()
        loud_jobs.plant(self.fleet)

    def submit(self, carrier: str, **portal: Any) -> int:
        """Submit a loud job with this carrier and return its number.

        `portal` is the `portal` block of its specification.
        """
        spec = loud_jobs.spec(self.witness.port, INFRA[carrier]) | {"portal": portal}
        return self.fleet.submit(f"{carrier} {self.fleet.submitted}", **spec)

    def has_been_cut(self, carrier: str) -> bool:
        """Whether posts have broken at every moment that this carrier has."""
        made = self.cuts.made
        # A follower's request fits into one piece.
        return made["answer"] >= CUTS and (carrier == "pull" or made["request"] >= CUTS)

    def is_held(self, job_id: int) -> bool:
        """Whether no program has come to its end yet."""
        return len(self.witness.living(job_id)) == len(loud_jobs.RANKS)

    def has_ended(self, job_id: int) -> bool:
        """Whether every program has come to its end."""
        return not self.witness.living(job_id)

    @contextmanager
    def broken(self, what: str) -> Iterator[None]:
        """Break `what` for as long as the block lasts: "web", "network", ..."""
        begin, end = {
            "web": (self.fleet["web-0"].kill, lambda: self.fleet.start("web-0")),
            "follower": (self.fleet["follower-0"].kill, self.fleet["follower-0"].start),
            "redis": (lambda: kill(self.fleet.redis), self.fleet.redis.start),
            "postgres": (lambda: kill(self.fleet.postgres), self.fleet.postgres.start),
            "network": (self.cuts.begin, self.cuts.end),
        }[what]
        begin()
        try:
            yield
        finally:
            end()

    def lose_machines(self, job_id: int) -> None:
        """Take away the machines of a job that is fetched, with all that was not fetched yet."""
        [(name,)] = self.fleet.query(CLUSTER.format(job_id))
        self.stub.cloud.preempt(name)

    def close(self) -> None:
        """End all of it."""
        self.fleet.close()
        self._to_stub.close()
        self.stub.close()
        self.witness.close()

    def _dial_stub(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.stub.port), timeout=5)


def kill(server: PostgresServer | RedisServer) -> None:
    """Kill a server with SIGKILL, and wait for its end."""
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait(30)
