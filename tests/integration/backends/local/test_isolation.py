"""Isolation of local jobs: the parts of this machine that they see, and what they leave on it."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import LaunchRequest
from jobs.backends.local.folders import SHARED_DIRECTORIES
from jobs.backends.local.isolation import can_keep_sockets_apart, jobs_get_own_user
from jobs.backends.local.journal import unacknowledged_frames
from jobs.backends.local.runner import installed_runner
from tests.integration.backends.rigs import LocalRig
from tests.runner_harness import wait_until

# Frames of two attempts at one stand-in portal, which distinguishes ranks, not attempts, would be
# taken for repeats of each other.
UNREACHABLE = "http://127.0.0.1:9"
NAME_FILES = (Path("/etc/passwd"), Path("/etc/group"))
as_root = pytest.mark.skipif(not jobs_get_own_user(), reason="jobs get no user of their own")


def test_nothing_of_the_portals_environment_reaches_a_job(local: LocalRig, monkeypatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("SECRET_KEY", "secret")
    names = {line.partition("=")[0] for line in local.output_of("env")}
    assert "HOME" in names
    assert not {
        name for name in names if name.startswith(("DATABASE", "SECRET", "DJANGO", "PYTEST"))
    }


def test_no_open_file_of_the_portal_reaches_a_job(local: LocalRig, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        request = local.request("long")
        local.backend.launch(request)
    local.wait_for_line(request.cluster_name)
    for pid in local.pids(request.cluster_name):
        opened = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
        assert str(tmp_path / "secret") not in opened
        # The lock on the cluster's directory, which the launcher was lent.
        assert str(local.path(request.cluster_name)) not in opened


def test_a_job_uses_the_portals_packages_but_installs_into_its_own_node(local: LocalRig) -> None:
    program = (
        "import sys, sysconfig, cryptography; "
        "print(sys.prefix); print(sysconfig.get_paths()['purelib'])"
    )
    prefix, packages = local.output_of(f'python3 -c "{program}"; pip --version > /dev/null')
    assert prefix.endswith("/rank-0/python")
    assert packages.startswith(prefix)


@as_root
def test_a_job_runs_as_a_user_of_its_own_without_a_way_back(local: LocalRig) -> None:
    request = local.request_program("id -u; id -G; grep NoNewPrivs /proc/self/status")
    local.backend.launch(request)
    uid = str(local.uid(request.cluster_name))
    assert local.ingest.end["reason"] == "COMPLETED"
    assert local.ingest.texts() == [uid, uid, "NoNewPrivs:\t1"]


@as_root
def test_a_job_s_user_has_a_name_where_mounts_are_private_and_nowhere_else(
    local: LocalRig, private_mounts: bool
) -> None:
    if not private_mounts:
        pytest.skip("needs private mounts")
    before = {path: path.read_bytes() for path in NAME_FILES}
    program = (
        "id -un; id -gn; getent passwd root | cut -d: -f3; getent passwd $(id -un) | cut -d: -f6"
    )
    spoiling = "; ".join(f"echo bad >> {path} || echo kept; rm {path}" for path in NAME_FILES)
    request = local.request_program(f"{program}; {{ {spoiling}; }} 2> /dev/null; ls -A /dev/shm")
    local.backend.launch(request)
    assert local.ingest.end["reason"]
    name = f"job{local.uid(request.cluster_name)}"
    home = str(local.path(request.cluster_name) / "rank-0")
    assert local.ingest.texts() == [name, name, "0", home, "kept", "kept"]
    assert {path: path.read_bytes() for path in NAME_FILES} == before


@as_root
def test_jobs_cannot_read_each_others_files(local: LocalRig) -> None:
    first = replace(local.request("long"), portal_url=UNREACHABLE)
    local.backend.launch(first)
    path = local.path(first.cluster_name)
    attempt_file = path / "rank-0" / "attempt.json"
    status = attempt_file.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (local.uid(first.cluster_name), 0o600)
    program = f"cat {attempt_file} {path}/cluster.json; ls {path} {path}/rank-0; echo done"
    assert local.output_of(program) == ["done"]


@as_root
def test_a_job_sees_no_processes_and_no_names_of_other_jobs(
    local: LocalRig, private_mounts: bool
) -> None:
    if not private_mounts:
        pytest.skip("needs private mounts")
    # An argument of a program: the script itself is in no command line.
    run = "bash -c 'sleep 600; true' secret-word"
    first = replace(local.request_program(run), portal_url=UNREACHABLE)
    local.backend.launch(first)
    wait_until(lambda: any(b"secret-word" in argv for argv in command_lines(local, first)))
    assert local.output_of(
        "grep -lE 'secret-[w]ord' /proc/[0-9]*/cmdline; ls -d /proc/1; ls ~/..; "
        "ls ~/../..; cat ~/../output-0 ~/../started-0; test -d /proc/$$ && echo own"
    ) == ["own"]


@as_root
def test_a_job_cannot_connect_to_another_jobs_abstract_sockets(local: LocalRig) -> None:
    if not can_keep_sockets_apart():
        pytest.skip("needs Linux 6.12")
    name = f"secret-{os.getpid()}"
    serve = f"import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0{name}'); s.listen()"
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')"
    own = f'python3 -c "{serve}; {connect}; print(1, flush=True); input()"'
    first = replace(local.request_program(f"sleep 600 | {own}"), portal_url=UNREACHABLE)
    local.backend.launch(first)
    wait_until(lambda: f"@{name}" in Path("/proc/net/unix").read_text())
    output = local.output_of(f'python3 -c "{connect}" 2>&1 | tail -n 1')
    assert output == ["PermissionError: [Errno 1] Operation not permitted"]


def command_lines(local: LocalRig, request: LaunchRequest) -> list[bytes]:
    return [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in local.pids(request.cluster_name)]


@pytest.mark.parametrize("trap", ["link", "pipe"])
def test_a_journal_that_is_a_trap_gives_nothing_away(local: LocalRig, trap: str) -> None:
    secret = local.folder.parent / "secret"
    secret.write_text('{"secret": true}\n')
    local.cut_off()
    request = local.request("long")
    local.backend.launch(request)
    local.wait_for_line(request.cluster_name)
    local.kill_everything(request.cluster_name)
    segment = local.path(request.cluster_name) / "rank-0/state/journal/00000001.ndjson"
    segment.unlink()
    segment.symlink_to(secret) if trap == "link" else os.mkfifo(segment)
    assert list(local.backend.leftovers(request.cluster_name).frames) == []


def test_a_journal_of_one_endless_line_comes_in_pieces_that_fit_into_memory(
    tmp_path: Path,
) -> None:
    segment = tmp_path / "state/journal/00000001.ndjson"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"x" * 5 * 1024 * 1024 + b"\n")
    pieces = unacknowledged_frames(installed_runner(tmp_path / "runners"), tmp_path / "state", None)
    assert max(map(len, pieces)) <= 1024 * 1024


@as_root
def test_leftovers_are_read_with_the_rights_of_the_job(local: LocalRig) -> None:
    local.cut_off()
    request = local.request("long")
    local.backend.launch(request)
    local.wait_for_line(request.cluster_name)
    local.kill_everything(request.cluster_name)
    segment = local.path(request.cluster_name) / "rank-0/state/journal/00000001.ndjson"
    assert list(local.backend.leftovers(request.cluster_name).frames) != []
    os.chown(segment, 0, 0)
    segment.chmod(0o600)
    assert list(local.backend.leftovers(request.cluster_name).frames) == []


def test_a_home_that_other_users_cannot_reach_is_shown_to_jobs(
    private_mounts: bool, tmp_path: Path
) -> None:
    if not private_mounts:
        pytest.skip("needs root and private mounts")
    home = tmp_path / "closed" / "home"
    home.mkdir(parents=True)
    home.chmod(0o711)
    (tmp_path / "closed").chmod(0o700)
    (tmp_path / "closed" / "secret").touch(0o644)
    rig = LocalRig(home)
    try:
        assert rig.output_of(f"ls {tmp_path}/closed; echo done") == ["home", "done"]
    finally:
        rig.close()


@as_root
def test_temporary_files_and_shared_memory_end_with_the_job(local: LocalRig) -> None:
    places = [Path(directory, f"mptest-{os.getpid()}") for directory in SHARED_DIRECTORIES]
    request = local.request_program("; ".join(f"mkdir {path}" for path in places))
    local.backend.launch(request)
    assert local.ingest.end["reason"] == "COMPLETED"
    local.backend.tear_down(request.cluster_name)
    assert not [path for path in places if path.exists()]
