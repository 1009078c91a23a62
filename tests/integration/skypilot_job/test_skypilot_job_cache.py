"""A cached job is found again by its own program only, and ends no other."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.integration.skypilot_job.conftest import RunClient, nothing_remains, remains
from tests.sky_stub.process import StubProcess

PARENTS = """
def parents(mesh):
    actors = mesh.spawn_procs(per_host={"procs": 1}).spawn("host", Host)
    return sorted(value for _, value in actors.parent.call().get(timeout=30).items())
"""
KEPT = PARENTS + "job = SkyPilotJob({'hosts': 1}, idle_minutes_to_autostop=600, **options)\n"
USE = "state = job.state(*where)\nsay(job.cluster_name, parents(state.hosts))\n"
HERE, SHARED = "where = []\n", "where = ['shared.pkl']\n"
NOTHING = "options = {}\n"


def cluster_of(stub: StubProcess) -> str:
    [name] = stub.cloud.names()
    return name


def test_a_kept_job_is_found_again_with_its_workers(stub: StubProcess, run: RunClient) -> None:
    first = run(NOTHING + HERE + KEPT + USE)
    assert first.wait() == 0, first.text
    second = run(NOTHING + HERE + KEPT + USE + "job.kill()")
    assert second.wait() == 0, second.text
    assert first.said == second.said
    assert remains(stub) == []
    third = run(NOTHING + HERE + KEPT + USE + "job.kill()")
    assert third.wait() == 0, third.text
    assert third.said != first.said
    assert remains(stub) == []


def test_a_kept_job_is_reached_as_the_program_says_that_finds_it(
    stub: StubProcess, run: RunClient
) -> None:
    first = run("options = {'reach': 'direct'}\n" + HERE + KEPT + USE)
    assert first.wait() == 0, first.text
    # There is no ssh to the nodes of the stand-in.
    second = run("options = {'reach': 'tunnel'}\n" + HERE + KEPT + USE)
    assert second.wait() == 1
    assert "neither directly (not tried) nor by ssh" in second.text
    assert stub.cloud.names() != []


def test_different_jobs_in_one_folder_do_not_end_each_other(
    stub: StubProcess, run: RunClient
) -> None:
    first = run(NOTHING + HERE + KEPT + USE)
    assert first.wait() == 0, first.text
    other = run("options = {'envs': {'A': 'b'}}\n" + HERE + KEPT + USE)
    assert other.wait() == 0, other.text
    assert len(stub.cloud.names()) == 2
    again = run(NOTHING + HERE + KEPT + USE + "job.kill()")
    assert again.wait() == 0, again.text
    assert again.said == first.said
    assert len(stub.cloud.names()) == 1


def test_a_file_of_another_job_is_an_error_that_names_its_cluster(
    stub: StubProcess, run: RunClient
) -> None:
    first = run(NOTHING + SHARED + KEPT + USE)
    assert first.wait() == 0, first.text
    other = run("options = {'envs': {'A': 'b'}}\n" + SHARED + KEPT + USE)
    assert other.wait() == 1
    assert f"sky down {cluster_of(stub)}" in other.text
    foreign = run("""
from monarch.job import ProcessJob
ProcessJob({"hosts": 1}).state("shared.pkl")
""")
    assert foreign.wait() == 1
    assert "CacheError" in foreign.text
    stub.cloud.remove(cluster_of(stub))
    later = run("options = {'envs': {'A': 'b'}}\n" + SHARED + KEPT + USE + "job.kill()")
    assert later.wait() == 0, later.text
    assert remains(stub) == []


def test_the_file_is_its_owners_alone_and_holds_no_secret(
    stub: StubProcess, run: RunClient, tmp_path: Path
) -> None:
    secret = "options = {'secrets': {'KEY': 'whispered'}}\n"
    first = run(secret + HERE + KEPT + USE)
    assert first.wait() == 0, first.text
    [file] = (tmp_path / "project" / ".monarch").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"whispered" not in file.read_bytes()
    # A user who could write to it could run programs as its reader.
    file.chmod(0o666)
    second = run(secret + HERE + KEPT + USE)
    assert second.wait() == 1
    assert "it is not read" in second.text


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_file_of_another_user_is_not_read(
    stub: StubProcess, run: RunClient, tmp_path: Path
) -> None:
    file = tmp_path / "project" / "shared.pkl"
    file.write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    os.chown(file, 65534, 65534)
    client = run(NOTHING + SHARED + KEPT + USE)
    assert client.wait() == 1
    assert "belongs to another user" in client.text
    assert not (tmp_path / "project" / "ran").exists()


def test_an_unused_cached_job_ends_when_it_has_been_idle(stub: StubProcess, run: RunClient) -> None:
    program = NOTHING + HERE + KEPT.replace("=600", "=10") + USE
    client = run(program)
    assert client.wait() == 0, client.text
    assert stub.cloud.names() != []
    assert nothing_remains(stub)
