"""Several of each: webs, workers, beats, followers and gateways as in production, on one database.

Each is a real process of its own, started by the command of docker-compose.yml; PostgreSQL and
Redis run beside them, and a balancer is in front of the webs and gateways.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import yaml

from jobs.backends.fake.backend import FakeBackend
from monarch_portal.embedded.account import server_account
from monarch_portal.embedded.postgres import PostgresServer
from monarch_portal.embedded.redis_server import RedisServer
from monarch_portal.embedded.server_paths import DATABASE
from tests.faults.fleet_member import Member
from tests.faults.front_door import FrontDoor
from tests.faults.tcp_proxy import Look, TcpProxy
from tests.faults.victims import children_of, kill
from tests.own_network import OwnNetwork
from tests.portal_process import CHECKOUT, PortalProcess
from tests.waiting import eventually

SERVICES = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())["services"]
# It says each request.
logging.getLogger("httpx").setLevel(logging.WARNING)
KINDS = ("web", "worker", "beat", "follower")
JOBS = "/api/v1/projects/default/jobs"
READY_S = 90
END_SESSIONS = f"""
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{DATABASE}'
"""
# Prepares the database, and makes a token, which production does not need.
PREPARE = """
import django
django.setup()
from django.core.management import call_command
from jobs.actions.accounts.tokens import create_token
from jobs.models import User
from jobs.permissions import Actor
call_command("prepare", verbosity=0)
print(create_token(Actor(User.objects.get(username="admin")), "test")[1])
"""


class Fleet:
    """`size` of each kind, and `gateways`. `environment` is added to what every process gets.

    With `on_the_way` every connection to PostgreSQL leads through a proxy that asks it. With
    `own_network` jobs run in a network from which the front door is reached, and nothing else.
    """

    def __init__(
        self,
        size: int = 2,
        on_the_way: Callable[[], Look] | None = None,
        *,
        gateways: int = 0,
        own_network: bool = False,
        **environment: str,
    ) -> None:
        self.place = PortalProcess()
        self.place.home.make()
        home = self.place.home
        account = server_account(home.postgres.data.parent, home.number)
        self.postgres = PostgresServer(home.postgres, account)
        self.redis = RedisServer(home.redis, account)
        self._servers = {"postgres": self.postgres.start(), "redis": self.redis.start()}
        self.database_door = TcpProxy(self._dial_postgres, on_the_way) if on_the_way else None
        self._keys: set[str] = set()
        self.failures: list[httpx.Response] = []
        ports = free_ports(size + gateways)
        self.door = FrontDoor(ports[:size], ports[size:])
        self.jobs_network = OwnNetwork(self.door.port) if own_network else None
        self.environment = self._environment(environment)
        numbered = [(kind, *each) for kind in KINDS for each in enumerate(ports[:size])]
        numbered += [("gateway", *each) for each in enumerate(ports[size:])]
        self.members = {
            f"{kind}-{number}": self._member(kind, number, port) for kind, number, port in numbered
        }
        self.token = self.run_python(PREPARE, DATABASE_URL=home.postgres.url()).split()[-1]

    @property
    def fake_directory(self) -> Path:
        """The directory of the fake nodes."""
        return self.place.home.path / "fake"

    @property
    def fake(self) -> FakeBackend:
        """The nodes without machines, as every process sees them."""
        return FakeBackend(self.fake_directory)

    @property
    def submitted(self) -> int:
        """The number of submitted jobs, each under a key of its own."""
        return len(self._keys)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Query the database directly."""
        with psycopg.connect(self.place.home.postgres.url(), autocommit=True) as session:
            return session.execute(statement).fetchall()

    def start(self, *names: str) -> None:
        """Start the members named, or all, and wait until they work."""
        for name in names or self.members:
            self.members[name].start()
        if any(name.startswith(("web", "gateway")) for name in names or self.members):
            assert eventually(lambda: self.door.is_open, timeout_s=READY_S), self.logs()
        fallen = [name for name, member in self.members.items() if not member.is_alive]
        assert not (fallen and not names), (fallen, self.logs())

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    def revive(self) -> None:
        """Continue the members that were stopped and start those that were killed."""
        for member in self.members.values():
            if member.is_alive:
                member.go_on()
        dead = [name for name, member in self.members.items() if not member.is_alive]
        if dead:
            self.start(*dead)

    def kill_server(self, name: str) -> None:
        """Kill PostgreSQL or Redis with all its processes, and start it again."""
        pid = self._servers[name].pid
        kill([pid, *children_of(pid)])
        self._servers[name].wait(20)
        server = self.postgres if name == "postgres" else self.redis
        self._servers[name] = server.start()

    @contextmanager
    def client(self, url: str = "") -> Iterator[httpx.Client]:
        """Open a client of the front door, or of one web."""
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(base_url=url or self.door.url, headers=headers, timeout=15) as client:
            yield client

    def get(self, path: str = "", **parameters: Any) -> Any:
        """Get a path below the project's jobs from the API; repeat while there is no answer."""
        found: list[httpx.Response] = []

        def answered() -> bool:
            try:
                with self.client() as client:
                    found.append(client.get(JOBS + path, params=parameters))
            except httpx.TransportError:
                return False
            return not self._has_failed(found[-1])

        assert eventually(answered, timeout_s=30), (found[-1:], self.logs())
        return found[-1].json()

    def submit(self, key: str, **spec: Any) -> int:
        """Submit a job, repeated under the same key until there is an answer; return its id."""
        found: list[httpx.Response] = []

        def accepted() -> bool:
            headers = {"Idempotency-Key": key}
            try:
                with self.client() as client:
                    found.append(client.post(JOBS, json={"spec": spec}, headers=headers))
            except httpx.TransportError:
                return False
            if self._has_failed(found[-1]):
                return False
            assert found[-1].status_code == 201, found[-1].text
            return True

        assert eventually(accepted, timeout_s=30), (found[-1:], self.logs())
        self._keys.add(key)
        return int(found[-1].json()["id"])

    def cancel(self, job_id: int) -> None:
        """Cancel a job, and repeat the request until the API accepts it."""

        def accepted() -> bool:
            try:
                with self.client() as client:
                    answer = client.post(f"{JOBS}/{job_id}/actions/cancel")
            except httpx.TransportError:
                return False
            return not self._has_failed(answer)

        assert eventually(accepted, timeout_s=30), self.logs()

    def end_sessions(self) -> int:
        """End every session of the portal's processes, and return how many there were."""
        with psycopg.connect(self.place.home.postgres.admin_url, autocommit=True) as admin:
            ended = admin.execute(END_SESSIONS).fetchone()
        return int(ended[0]) if ended else 0

    def job(self, job_id: int) -> dict[str, Any]:
        """Get one job."""
        job: dict[str, Any] = self.get(f"/{job_id}")
        return job

    def lines(self, job_id: int, rank: int = 0) -> list[str]:
        """Return a rank's output as the log has it."""
        texts: list[str] = []
        after: str | None = ""
        while after is not None:
            bounds = {"after": after} if after else {}
            page = self.get(f"/{job_id}/logs", limit=1000, stream="stdout", rank=rank, **bounds)
            texts += [line["text"] for line in page["results"]]
            after = page["next"]
        return texts

    def wait_for_end(self, job_id: int, timeout_s: float = 60) -> dict[str, Any]:
        """Wait until the job is over and return it."""
        over = eventually(lambda: self.job(job_id)["is_final"], timeout_s=timeout_s)
        assert over, (self.job(job_id), self.logs())
        return self.job(job_id)

    def run_python(self, code: str, **environment: str) -> str:
        """Run `code` with the fleet's settings and return its output."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def logs(self) -> str:
        """Return the ends of all processes' logs."""
        return self.place.logs()

    def close(self) -> None:
        """End everything, the jobs too, and remove the home."""
        for member in self.members.values():
            member.kill()
        self.door.close()
        if self.jobs_network is not None:
            self.jobs_network.close()
        if self.database_door is not None:
            self.database_door.close()
        for server in (self.redis, self.postgres):
            server.stop()
        self.place.close()

    def _has_failed(self, answer: httpx.Response) -> bool:
        """Whether the portal failed to do its work; such an answer is kept for tests."""
        if answer.is_server_error:
            self.failures.append(answer)
        return answer.is_server_error

    def _dial_postgres(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.place.home.postgres.sockets / ".s.PGSQL.5432"))
        return connection

    def _database_url(self) -> str:
        postgres = self.place.home.postgres
        if self.database_door is None:
            return postgres.url()
        place = f"127.0.0.1:{self.database_door.port}/{DATABASE}"
        return f"postgresql://{DATABASE}:{postgres.password}@{place}"

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        home = self.place.home
        self.fake.be_pulled()
        return {
            **self.place.environment,
            "DJANGO_SETTINGS_MODULE": "tests.faults.fleet_settings",
            "DATABASE_URL": self._database_url(),
            "REDIS_URL": home.redis.url,
            "SECRET_KEY": "k" * 60,
            "MPORTAL_URL": self.door.url,
            "MPORTAL_LOCAL_BACKEND": "1",
            "FLEET_FAKE_BACKEND": str(self.fake_directory),
            "PYTHONPATH": str(CHECKOUT),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **more,
        }

    def _member(self, kind: str, number: int, port: int) -> Member:
        replaced = {
            "8000": str(port),
            "0.0.0.0": "127.0.0.1",
            "manage.py": str(CHECKOUT / "manage.py"),
        }
        words = shlex.split(SERVICES[kind]["command"])
        name = f"{kind}-{number}"
        program = str(Path(sys.executable).with_name(words[0]))
        argv = [program, *(replaced.get(word, word) for word in words[1:])]
        if kind == "worker" and self.jobs_network is not None:
            # It reaches PostgreSQL and Redis by Unix sockets, and starts the runners.
            argv = [*self.jobs_network.prefix, *argv]
        environment = {**self.environment, "FLEET_MEMBER": name}
        if kind == "gateway":
            address = f"127.0.0.1:{port}"
            environment |= {"MPORTAL_GATEWAY_LISTEN": address, "MPORTAL_GATEWAY_INTERNAL": address}
        return Member(name, argv, environment, self.place.home.logs / f"{name}.log")


def free_ports(count: int) -> list[int]:
    """Find ports on which no process listens."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
