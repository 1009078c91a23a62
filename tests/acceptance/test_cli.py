"""The command line on a real portal: detaching, waiting, following through a crash, signing in."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.portal_process import CHECKOUT, PortalProcess
from tests.waiting import eventually

DETACHED, CANCELLED, PORTAL_TROUBLE, BAD_REQUEST = 130, 143, 125, 2


@contextmanager
def following(portal: PortalProcess, output: Path, *arguments: str) -> Iterator[subprocess.Popen]:
    """Run `mportal` in the background and write its standard output to a file."""
    account = {"MPORTAL_URL": portal.url, "MPORTAL_TOKEN": portal.token}
    with output.open("wb") as file:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("mportal")), *arguments],
            cwd=CHECKOUT,
            env={**portal.environment, **account},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def job_of(portal: PortalProcess, name: str) -> dict:
    return json.loads(portal.mportal("ps", "--name", name, "-o", "json").stdout)[0]


def submitted(portal: PortalProcess, command: str, *options: str) -> str:
    """Submit a job that runs `command` and return its id."""
    done = portal.mportal("run", "--detach", "-q", *options, "--", command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_held_job_starts_when_it_is_released_and_not_before(portal):
    held = submitted(portal, "echo let go", "--hold")
    # Those behind it pass, and with them the moments at which it could have been started.
    for _ in range(2):
        passing = submitted(portal, "true")
        assert portal.mportal("wait", passing).returncode == 0
    said = portal.mportal("get", held).stdout
    assert "QUEUED" in said and "Held by admin." in said
    portal.mportal("release", held)
    assert portal.mportal("logs", "-f", held).stdout == "let go\n"
    late = portal.mportal("hold", held)
    assert (late.returncode, "already ended" in late.stderr) == (PORTAL_TROUBLE, True)


@pytest.mark.feature("P7.3")
def test_ctrl_c_leaves_the_job_running(portal, tmp_path):
    output = tmp_path / "out"
    command = ("run", "--name", "detach", "--", "echo up; sleep 600")
    with following(portal, output, *command) as process:
        assert eventually(lambda: output.read_text() == "up\n")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    job = job_of(portal, "detach")
    assert process.returncode == DETACHED
    assert f"mportal logs -f {job['id']}" in said.decode()
    assert job["status"] == "RUNNING"
    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert portal.mportal("wait", str(job["id"])).returncode == CANCELLED


@pytest.mark.feature("P7.3")
@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_waiting_ends_with_the_jobs_code(portal, command, code):
    assert portal.mportal("wait", submitted(portal, command)).returncode == code


def test_the_verbs_of_a_jobs_life_work_together(portal):
    first = submitted(portal, "echo one; echo two", "--name", "verbs")
    assert portal.mportal("wait", first).returncode == 0
    assert portal.mportal("logs", first).stdout == "one\ntwo\n"
    assert portal.mportal("logs", first, "--tail", "1").stdout == "two\n"
    assert portal.mportal("logs", first, "--follow", "--tail", "1").stdout == "two\n"
    assert portal.mportal("logs", first, "--grep", "^t[a-z]o$").stdout == "two\n"
    assert (
        portal.mportal("logs", first, "--grep", "ONE", "-F", "-i", "--since", "1d").stdout
        == "one\n"
    )
    nothing = portal.mportal("logs", first, "--grep", "three")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (1, "", "")
    assert portal.mportal("logs", first, "--grep", "(").returncode == BAD_REQUEST
    again = portal.mportal("rerun", first, "--follow")
    assert (again.returncode, again.stdout.splitlines()[-2:]) == (0, ["one", "two"])
    assert portal.mportal("cancel", first).returncode == PORTAL_TROUBLE
    gone = eventually(lambda: portal.mportal("delete", "-y", first).returncode == 0)
    assert gone
    assert "There is no job" in portal.mportal("get", first).stderr


@pytest.mark.feature("S2.1")
def test_the_workdir_arrives_on_every_node(portal, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "words.txt").write_text("from the laptop\n")
    spec = tmp_path / "job.yaml"
    spec.write_text("name: folder\nnum_nodes: 2\nworkdir: code\nrun: cat words.txt\n")
    done = portal.mportal("submit", "-f", str(spec), "--follow")
    assert done.returncode == 0, done.stderr
    lines = {f"node {rank} | from the laptop" for rank in (0, 1)}
    assert set(done.stdout.splitlines()) == lines
    assert "Sending code" in done.stderr
    assert "Sending" not in portal.mportal("submit", "-f", str(spec)).stderr


def test_variables_reach_the_job(portal):
    done = portal.mportal("run", "-e", "A=b c", "--", "echo $A")
    assert done.stdout == "b c\n"


def test_errors_of_a_specification_are_shown_in_the_file(portal, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("name: hello\nrun: echo\nnum_nodse: 2\n")
    done = portal.mportal("submit", "-f", str(spec))
    assert done.returncode == BAD_REQUEST
    assert f"{spec}:3: num_nodse" in done.stderr
    assert "num_nodes" in done.stderr


@pytest.mark.feature("P8.1")
def test_a_read_only_token_looks_but_submits_nothing(portal):
    token = portal.mportal("token", "create", "reader", "--read-only", "-q").stdout.strip()
    assert portal.mportal("ps", MPORTAL_TOKEN=token).returncode == 0
    refused = portal.mportal("run", "--", "true", MPORTAL_TOKEN=token)
    assert refused.returncode == PORTAL_TROUBLE
    assert "submit jobs" in refused.stderr
    (number,) = [
        row["id"]
        for row in json.loads(portal.mportal("token", "ls", "-o", "json").stdout)
        if row["name"] == "reader"
    ]
    assert portal.mportal("token", "revoke", str(number)).returncode == 0
    revoked = portal.mportal("ps", MPORTAL_TOKEN=token)
    assert (revoked.returncode, "mportal login" in revoked.stderr) == (PORTAL_TROUBLE, True)


def test_what_login_keeps_is_used_afterwards(portal, tmp_path):
    nothing = {"MPORTAL_URL": "", "MPORTAL_TOKEN": "", "XDG_CONFIG_HOME": str(tmp_path)}
    assert portal.mportal("whoami", **nothing).returncode == PORTAL_TROUBLE
    login = portal.mportal("login", "--url", portal.url, "--token", portal.token, **nothing)
    assert login.returncode == 0, login.stderr
    assert portal.mportal("whoami", "-q", **nothing).stdout == "admin\n"
    assert portal.mportal("project", "ls", "-q", **nothing).stdout == "default\n"


def test_a_body_that_no_endpoint_takes_is_refused_before_the_caller_is_authenticated(portal):
    answer = httpx.post(f"{portal.url}/api/v1/tokens", content=b"x" * 6_000_000)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.feature("P3.1")
@pytest.mark.slow
def test_following_outlives_the_portal_without_a_line_lost_or_doubled(own_portal, tmp_path):
    own_portal.start()
    output, count = tmp_path / "out", 150
    loop = f"for i in $(seq {count}); do echo $i; sleep 0.05; done; exit 5"
    with following(own_portal, output, "run", "--name", "long", "--", loop) as process:
        assert eventually(lambda: output.read_text().count("\n") > 10)
        own_portal.kill()
        own_portal.start()
        _, said = process.communicate(timeout=60)
    assert output.read_text().splitlines() == [str(number) for number in range(1, count + 1)]
    assert process.returncode == 5
    assert "Connection lost" in said.decode()
