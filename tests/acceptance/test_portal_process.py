"""The portal as a whole: it starts, survives killed processes, stops, and starts again."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from monarch_portal.embedded.process_table import start_time
from tests.portal_process import PortalProcess
from tests.sky_stub.process import free_port
from tests.waiting import eventually

PARTS = {"supervisor", "postgres", "redis", "web", "worker", "beat", "follower", "gateway"}


@pytest.fixture
def second_portal() -> Iterator[PortalProcess]:
    process = PortalProcess()
    yield process
    process.close()


def test_a_start_prints_the_address_and_a_sign_in_link(portal):
    said = portal.run("start").stdout
    assert said.strip() == f"The portal already runs at {portal.url}"
    assert set(portal.pids()) == PARTS


def test_running_it_twice_prints_the_address_and_succeeds(portal):
    said = portal.run("run")
    assert said.returncode == 0
    assert f"The portal already runs at {portal.url}" in said.stdout


def test_it_is_ready_once_started_and_listens_on_loopback_only(portal):
    with portal.client() as client:
        assert client.get("/readyz").json() == {"database": "ok", "redis": "ok", "disk": "ok"}
    assert portal.url.startswith("http://127.0.0.1:")


def test_idle_it_takes_less_than_half_a_gigabyte(portal):
    status = portal.status()
    assert status["running"]
    assert {one["name"] for one in status["processes"]} == PARTS
    assert 0 < status["memory_mb"] < 500


def test_its_secrets_and_data_are_closed_to_other_users(portal):
    home = portal.home
    private = [home.path / "secret-key", home.postgres.secret, home.admin_token_file, home.lock]
    for file in private:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    for directory in (home.logs, home.postgres.data.parent, home.postgres.sockets):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700, directory
    # Others may pass through to their job, but list nothing.
    assert stat.S_IMODE(home.path.stat().st_mode) & 0o044 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the user")
def test_started_by_root_its_servers_run_under_an_id_of_their_own(portal):
    uids = {name: Path("/proc", str(pid)).stat().st_uid for name, pid in portal.pids().items()}
    assert uids["postgres"] == uids["redis"] != 0
    assert uids["web"] == 0


def test_a_part_that_dies_is_started_again(own_portal):
    own_portal.start()
    before = own_portal.pids()
    own_portal.kill("postgres", "redis", "web", "worker", "beat", "follower", "gateway")
    assert eventually(lambda: set(own_portal.pids()) == PARTS)
    own_portal.wait_until_ready()
    after = own_portal.pids()
    assert after.pop("supervisor") == before.pop("supervisor")
    assert not set(after.values()) & set(before.values())


def test_after_everything_is_killed_at_once_the_next_start_finds_its_data(own_portal):
    own_portal.start()
    url, token = own_portal.url, own_portal.token
    own_portal.kill()
    assert own_portal.run("status").returncode == 1
    own_portal.start()
    assert (own_portal.url, own_portal.token) == (url, token)
    with own_portal.client() as client:
        assert client.get("/api/v1/projects").status_code == 200


def test_after_the_supervisor_alone_is_killed_the_next_start_ends_the_orphans(own_portal):
    own_portal.start()
    orphans = own_portal.pids()
    own_portal.kill("supervisor")
    own_portal.start()
    own_portal.wait_until_ready()
    assert not set(own_portal.pids().values()) & set(orphans.values())


def test_stopping_ends_every_process_and_again_is_nothing(own_portal):
    own_portal.start()
    pids = own_portal.pids()
    assert "ended" in own_portal.stop()
    assert not own_portal.home.process_table.exists()
    assert {start_time(pid) for pid in pids.values()} == {None}
    assert own_portal.stop() == "No portal runs here.\n"


def test_a_portal_that_is_moved_on_purpose_takes_its_running_jobs_along(own_portal):
    own_portal.start()
    url = own_portal.url
    job = own_portal.mportal("run", "-d", "-q", "echo one; sleep 1; echo two").stdout.strip()
    assert eventually(lambda: "one" in own_portal.mportal("logs", job).stdout)
    own_portal.stop()
    with socket.create_server(("127.0.0.1", int(url.rpartition(":")[2]))):
        refused = own_portal.run("start")
        assert refused.returncode == 1
        assert f"is in use by process {os.getpid()} " in refused.stdout
        assert own_portal.url == url
        own_portal.environment["MPORTAL_PORT"] = str(free_port())
        own_portal.start()
    assert own_portal.url != url
    own_portal.wait_until_ready()
    assert own_portal.mportal("wait", job, "--timeout", "60").returncode == 0
    assert own_portal.mportal("logs", job, "-s", "stdout").stdout.splitlines() == ["one", "two"]


def test_two_installations_share_no_port_no_cookie_and_no_user_id(portal, second_portal):
    second_portal.start()
    assert portal.url != second_portal.url
    assert not set(portal.pids().values()) & set(second_portal.pids().values())
    code = "from django.conf import settings; print(settings.SESSION_COOKIE_NAME)"
    names = {p.manage("shell", "--no-imports", "-c", code).stdout for p in (portal, second_portal)}
    assert len(names) == 2
    with portal.client() as client:
        answer = client.get(f"{second_portal.url}/api/v1/projects")
    assert answer.status_code == 401


def test_a_start_that_fails_says_why_and_leaves_nothing_running(own_portal):
    own_portal.start()
    own_portal.stop()
    (own_portal.home.postgres.data / "PG_VERSION").write_text("17\n")
    done = own_portal.run("start")
    assert done.returncode == 1
    assert "written by PostgreSQL 17" in done.stdout
    assert own_portal.pids() == {}


def test_no_program_of_a_job_outlives_the_portal_of_a_test(own_portal):
    own_portal.start()
    run = "sh -c 'echo $$; until [ -e go ]; do sleep 0.1; done'; true"
    job = own_portal.mportal("run", "-d", "-q", run).stdout.strip()

    def lines() -> list[str]:
        return own_portal.mportal("logs", job, "-s", "stdout").stdout.splitlines()

    assert eventually(lambda: len(lines()) == 1), own_portal.logs()
    [pid] = map(int, lines())
    assert start_time(pid) is not None
    own_portal.close()
    assert start_time(pid) is None
