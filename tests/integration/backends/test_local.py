"""The local backend alone: what a job sees, and what survives whom."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import ClusterPhase, UploadSource
from jobs.backends.local_folders import SHARED_DIRECTORIES
from jobs.backends.local_isolation import jobs_get_own_user
from jobs.backends.local_processes import process_of
from jobs.errors import BackendError
from monarch_client.sync.archive import pack
from tests.integration.backends.rigs import LINE, LocalRig, wait_for_phase
from tests.runner_harness import wait_until

as_root = pytest.mark.skipif(not jobs_get_own_user(), reason="jobs get no user of their own")

# Launches a job from a process of its own, as a Celery worker would, and waits to be killed.
LAUNCH_AND_WAIT = """
import json, signal, sys
from pathlib import Path
from jobs.backends.base import LaunchRequest
from jobs.backends.local import LocalBackend, LocalOptions
options, request = json.loads(sys.argv[1])
paths = {key: Path(options[key]) for key in ("directory", "leases")}
backend = LocalBackend(LocalOptions(**paths, nodes=4, portal_file=None), None)
backend.launch(LaunchRequest(**request))
print("launched", flush=True)
signal.pause()
"""


def launch_and_kill(local: LocalRig, request) -> None:
    fields = {name: getattr(request, name) for name in request.__slots__ if name != "uploads"}
    options = {"directory": str(local.folder), "leases": str(local._leases)}
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH_AND_WAIT, json.dumps([options, fields])],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[3],
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"launched\n"
        os.killpg(worker.pid, signal.SIGKILL)


def test_a_job_outlives_the_process_that_launched_it(local: LocalRig) -> None:
    request = local.request_program("read -r go < /dev/null; sleep 0.5; echo still here; exit 7")
    launch_and_kill(local, request)
    local.ingest.wait_for(lambda: "still here" in local.ingest.texts())
    assert local.ingest.end["exit_code"] == 7


def test_a_launched_runner_is_nobodys_child_here_and_leaves_no_zombie(local: LocalRig) -> None:
    request = local.request("short")
    local.backend.launch(request)
    runner = int(local.incarnations(request.cluster_name)[0].split()[1])
    process = process_of(runner)
    assert process is None or process.parent != os.getpid()
    wait_for_phase(local.backend, request.cluster_name, ClusterPhase.ENDED)
    wait_until(lambda: not Path(f"/proc/{runner}").exists())


def test_a_launch_cut_off_before_anything_started_is_gone_and_can_be_repeated(
    local: LocalRig, monkeypatch
) -> None:
    request = local.request("short", nodes=2)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("jobs.backends.local.start_nodes", interrupt)
        local.backend.launch(request)
    assert local.backend.observe(request.cluster_name).phase is ClusterPhase.GONE
    assert local.remains(request.cluster_name)
    local.another_process().launch(request)
    assert local.ingest.end["reason"] == "COMPLETED"


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


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


def test_every_node_has_a_working_copy_an_address_and_temporary_files_of_its_own(
    local: LocalRig,
) -> None:
    program = (
        "rank=$SKYPILOT_NODE_RANK; echo $rank | tee mine $TMPDIR/mine > /dev/null; "
        "while [ ! -e $HOME/../rank-$((1 - rank))/workdir/mine ]; do sleep 0.02; done; "
        "echo $rank $(cat mine) $(cat $TMPDIR/mine) $HOME"
    )
    request = local.request_program(program, nodes=2)
    local.backend.launch(request)
    addresses = {node.address for node in local.backend.observe(request.cluster_name).nodes}
    assert local.ingest.end["reason"] == "COMPLETED"
    assert len(addresses) == 2
    path = local.path(request.cluster_name)
    assert sorted(local.ingest.texts()) == [f"{k} {k} {k} {path}/rank-{k}" for k in range(2)]


@pytest.mark.feature("S3.1")
def test_a_plain_job_has_setup_variables_and_an_exit_code_on_every_node(local: LocalRig) -> None:
    setup = "echo $SKYPILOT_SETUP_NODE_RANK > was_set_up"
    # The last node ends last: the others must have had time to end as they like.
    run = (
        "echo $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES, $(cat was_set_up), "
        "$(echo $SKYPILOT_NODE_IPS | wc -w); "
        "[ $SKYPILOT_NODE_RANK -lt 2 ] || { sleep 0.5; exit 7; }"
    )
    request = local.request_program(run, nodes=3, setup=setup)
    local.backend.launch(request)
    assert local.ingest.end["reason"] == "USER_CODE"
    assert sorted(local.ingest.texts()) == [f"{k} of 3, {k}, 3" for k in range(3)]
    codes = {frame["rank"]: frame["exit_code"] for frame in local.ingest.of_kind("exit")}
    assert codes == {0: 0, 1: 0, 2: 7}


def test_a_job_uses_the_portals_packages_but_installs_into_its_own_node(local: LocalRig) -> None:
    program = (
        "import sys, sysconfig, cryptography; "
        "print(sys.prefix); print(sysconfig.get_paths()['purelib'])"
    )
    prefix, packages = local.output_of(f'python3 -c "{program}"; pip --version > /dev/null')
    assert prefix.endswith("/rank-0/python")
    assert packages.startswith(prefix)


def test_a_portal_that_has_moved_is_found_again(local: LocalRig) -> None:
    request = local.request_program(f"echo {LINE}; while [ ! -e ../go ]; do sleep 0.05; done")
    local.backend.launch(request)
    local.wait_for_line(request.cluster_name)
    local.ingest.move()
    # As the portal writes it: whole or not at all, so the file is another one afterwards.
    draft = local.portal_file.with_suffix(".new")
    draft.write_text(json.dumps({"url": local.ingest.url}))
    draft.chmod(0o644)
    draft.replace(local.portal_file)
    (local.path(request.cluster_name) / "rank-0" / "go").touch()
    assert local.ingest.end["reason"] == "COMPLETED"


@pytest.mark.feature("S2.1")
def test_an_uploaded_folder_arrives_on_every_node_and_belongs_to_the_job(
    local: LocalRig, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "train.sh").write_text("echo $SKYPILOT_NODE_RANK > here; cat here")
    local.uploads["upload:code"] = pack(source, tmp_path / "code.tar.gz").path
    request = local.request_program("cd deep; sh train.sh; cat ~/data/deep/train.sh; echo", nodes=2)
    targets = {"workdir": "upload:code", "~/data": "upload:code"}
    sources = tuple(UploadSource(reference, target) for target, reference in targets.items())
    local.backend.launch(replace(request, uploads=sources))
    assert local.ingest.end["reason"] == "COMPLETED"
    script = "echo $SKYPILOT_NODE_RANK > here; cat here"
    assert sorted(local.ingest.texts()) == ["0", "1", script, script]


def test_an_upload_that_cannot_be_unpacked_is_an_error_of_the_backend(
    local: LocalRig, tmp_path: Path
) -> None:
    local.uploads["upload:broken"] = tmp_path / "broken.tar.gz"
    local.uploads["upload:broken"].write_bytes(b"not an archive")
    request = local.request("short")
    with pytest.raises(BackendError, match="cannot be unpacked"):
        local.backend.launch(replace(request, uploads=(UploadSource("upload:broken", "workdir"),)))
    local.backend.tear_down(request.cluster_name)
    assert local.remains(request.cluster_name) == []


def test_processes_that_left_their_session_go_with_the_rest(local: LocalRig) -> None:
    program = f"setsid nohup sleep 601 & (sleep 602 & disown); echo {LINE}; sleep 603"
    request = local.request_program(program)
    local.backend.launch(request)
    local.wait_for_line(request.cluster_name)
    pids = local.pids(request.cluster_name)
    local.backend.tear_down(request.cluster_name)
    assert len(pids) >= 5
    assert not [pid for pid in pids if process_of(pid)]


def test_directories_without_the_right_to_write_go_with_the_rest(local: LocalRig) -> None:
    program = f"mkdir -p a/b; touch a/b/c; chmod 500 a/b a; echo {LINE}; sleep 600"
    request = local.request_program(program)
    local.backend.launch(request)
    local.wait_for_line(request.cluster_name)
    local.backend.tear_down(request.cluster_name)
    assert local.remains(request.cluster_name) == []


def test_another_boot_of_the_machine_leaves_no_runner_alive(local: LocalRig) -> None:
    request = local.request("short")
    local.backend.launch(request)
    wait_for_phase(local.backend, request.cluster_name, ClusterPhase.ENDED)
    mark = local.path(request.cluster_name) / "started-0"
    own_ticks = process_of(os.getpid()).started
    mark.write_text(f"another-boot {os.getpid()} {own_ticks}\n")
    assert local.backend.observe(request.cluster_name).phase is ClusterPhase.ENDED


def test_a_runner_that_cannot_start_says_why(local: LocalRig) -> None:
    request = local.request("short")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.backends.local_nodes.ports_of", lambda _: (22222, "no number"))
        local.backend.launch(request)
    wait_for_phase(local.backend, request.cluster_name, ClusterPhase.ENDED)
    assert "attempt.json" in local.backend.observe(request.cluster_name).nodes[0].detail


@as_root
def test_a_job_runs_as_a_user_of_its_own_without_a_way_back(local: LocalRig) -> None:
    request = local.request_program("id -u; id -G; grep NoNewPrivs /proc/self/status")
    local.backend.launch(request)
    uid = str(local.uid(request.cluster_name))
    assert local.ingest.end["reason"] == "COMPLETED"
    assert local.ingest.texts() == [uid, uid, "NoNewPrivs:\t1"]


@as_root
def test_jobs_cannot_read_each_others_files(local: LocalRig) -> None:
    first = local.request("long")
    local.backend.launch(first)
    path = local.path(first.cluster_name)
    attempt_file = path / "rank-0" / "attempt.json"
    status = attempt_file.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (local.uid(first.cluster_name), 0o600)
    program = f"cat {attempt_file} {path}/cluster.json; ls {path} {path}/rank-0; echo done"
    assert [line for line in local.output_of(program) if line != LINE] == ["done"]


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
