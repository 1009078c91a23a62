"""The commands of docker-compose.yml, run as processes beside a PostgreSQL and a Redis."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import httpx
import psycopg
import pytest
import redis
import yaml

from monarch_portal.embedded.account import server_account
from monarch_portal.embedded.postgres import PostgresServer
from monarch_portal.embedded.redis_server import RedisServer
from tests.integration.gateway.ends import refusal
from tests.portal_process import CHECKOUT, PortalProcess
from tests.sky_stub.process import free_port
from tests.waiting import eventually

SERVICES = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())["services"]
Run = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def production() -> Iterator[dict[str, str]]:
    """Yield the environment of a production setup whose database the one-shot service prepared."""
    place = PortalProcess()
    home = place.home
    home.make()
    account = server_account(home.postgres.data.parent, home.number)
    servers = (PostgresServer(home.postgres, account), RedisServer(home.redis, account))
    for server in servers:
        server.start()
    environment = place.environment | {
        "DATABASE_URL": home.postgres.url(),
        "REDIS_URL": home.redis.url,
        "SECRET_KEY": "k" * 60,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    migrate = shlex.split(SERVICES["migrate"]["command"])
    subprocess.run(migrate, cwd=CHECKOUT, env=environment, check=True, capture_output=True)
    yield environment
    for server in servers:
        server.stop()
    place.close()


@pytest.fixture
def run(production: dict[str, str]) -> Iterator[Run]:
    """Start a service's command; it is ended with the test, and must end orderly."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        service: str, replaced: Mapping[str, str] = MappingProxyType({}), **environment: str
    ) -> subprocess.Popen[bytes]:
        argv = [replaced.get(word, word) for word in shlex.split(SERVICES[service]["command"])]
        environment = {**production, **environment}
        process = subprocess.Popen(argv, cwd=CHECKOUT, env=environment, stderr=subprocess.DEVNULL)
        started.append(process)
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
    assert all(process.wait(30) in {0, -signal.SIGTERM} for process in started)


@pytest.mark.feature("P1.2")
def test_web_serves_and_is_ready(run: Run) -> None:
    port = str(free_port())
    run("web", {"8000": port, "0.0.0.0": "127.0.0.1"})

    def answer() -> dict[str, str]:
        try:
            ready: dict[str, str] = httpx.get(f"http://127.0.0.1:{port}/readyz").json()
        except httpx.TransportError:
            return {}
        return ready

    assert eventually(answer)
    ready = answer()
    assert (ready["database"], ready["redis"]) == ("ok", "ok")


@pytest.mark.feature("P1.2")
def test_the_gateway_listens_for_a_proxy_and_is_healthy(run: Run) -> None:
    service, url = SERVICES["gateway"], f"http://127.0.0.1:{free_port()}"
    [address] = service["ports"]
    assert service["environment"]["MPORTAL_GATEWAY_LISTEN"] == "0.0.0.0:8001"
    assert address.endswith(":8001")
    run("gateway", MPORTAL_GATEWAY_LISTEN=url.removeprefix("http://"))
    _, *check = service["healthcheck"]["test"]
    check = [word.replace("http://127.0.0.1:8001", url) for word in check]
    assert url in check[-1]

    def is_healthy() -> bool:
        return subprocess.run(check, capture_output=True, check=False).returncode == 0

    assert eventually(is_healthy)
    assert refusal(url, "session", "mpg_unknown")[0] == 401


@pytest.mark.feature("P1.2")
def test_beat_sends_ticks_and_the_worker_takes_them(run: Run, production: dict[str, str]) -> None:
    broker = redis.Redis.from_url(production["REDIS_URL"])
    run("beat")
    assert eventually(lambda: broker.llen("mportal") > 0)
    run("worker")
    assert eventually(lambda: broker.llen("mportal") == 0)
    broker.close()


@pytest.mark.feature("P1.2")
@pytest.mark.parametrize("service", ["worker", "beat", "follower", "migrate"])
def test_the_health_check_of_a_container_answers(service: str, production: dict[str, str]) -> None:
    check = SERVICES[service].get("healthcheck", {}).get("test", ["CMD", "true"])
    assert check[0] == "CMD"
    subprocess.run(check[1:], cwd=CHECKOUT, env=production, check=True, capture_output=True)


@pytest.mark.feature("P1.2")
def test_the_follower_runs_until_it_is_requested_to_end(run: Run) -> None:
    follower = run("follower")
    process = Path("/proc", str(follower.pid))

    def has_settled() -> bool:
        """Whether it heeds the signal that ends it; the kernel shows no mask while it waits."""
        waits = "sigtimedwait" in (process / "wchan").read_text()
        return waits or _handles((process / "status").read_text(), signal.SIGTERM)

    assert eventually(has_settled)
    assert follower.poll() is None


@pytest.fixture
def upgraded(production: dict[str, str]) -> Iterator[None]:
    """Leave rows like a newer release's in the database, for one test."""
    name = "9001_from_a_newer_release"
    with psycopg.connect(production["DATABASE_URL"], autocommit=True) as database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('jobs', %s, now())", [name]
        )
        yield
        database.execute("DELETE FROM django_migrations WHERE name = %s", [name])


@pytest.mark.parametrize("service", ["web", "worker", "follower", "gateway", "migrate"])
def test_an_older_release_does_not_start_on_the_database_of_a_newer_one(
    service: str, production: dict[str, str], upgraded: None
) -> None:
    argv = [{"8000": "0"}.get(word, word) for word in shlex.split(SERVICES[service]["command"])]
    ended = subprocess.run(
        argv, cwd=CHECKOUT, env=production, timeout=60, capture_output=True, text=True, check=False
    )
    assert ended.returncode not in {0, -signal.SIGTERM}
    assert "does not know its migration jobs.9001_from_a_newer_release" in ended.stderr


def _handles(status: str, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal, or blocks it to collect it later."""
    masks = [line.split()[1] for line in status.splitlines() if line[:7] in {"SigCgt:", "SigBlk:"}]
    return any(int(mask, 16) & (1 << (number - 1)) for mask in masks)
