"""The local backend alone: files on its nodes, and which processes survive which others."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.backends.base import ClusterPhase, UploadSource
from jobs.backends.local import folders as local_folders
from jobs.backends.local.isolation import start_nodes
from jobs.backends.local.processes import process_of
from jobs.errors import BackendError, BackendUnavailableError
from monarch_client.sync.archive import pack
from tests.integration.backends.rigs import LINE, LocalRig, wait_for_phase
from tests.runner_harness import wait_until

# Fields of a request that are no JSON, and that this launch does without.
LEFT_OUT = {"uploads", "authority_seed"}
# Launches a job from a process of its own, as a Celery worker would, and waits to be killed.
LAUNCH_AND_WAIT = """
import json, signal, sys
from pathlib import Path
from jobs.backends.base import LaunchRequest
from jobs.backends.local.backend import LocalBackend, LocalOptions
options, request = json.loads(sys.argv[1])
paths = {key: Path(options[key]) for key in ("directory", "leases")}
backend = LocalBackend(LocalOptions(**paths, nodes=4, portal_file=None), None)
backend.launch(LaunchRequest(**request))
print("launched", flush=True)
signal.pause()
"""


def launch_and_kill(local: LocalRig, request) -> None:
    fields = {name: getattr(request, name) for name in request.__slots__ if name not in LEFT_OUT}
    options = {"directory": str(local.folder), "leases": str(local._leases)}
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH_AND_WAIT, json.dumps([options, fields])],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[4],
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"launched\n"
        os.killpg(worker.pid, signal.SIGKILL)


def test_a_job_outlives_the_process_that_launched_it(local: LocalRig) -> None:
    request = local.request_program("read -r go < /dev/null; sleep 0.5; echo still here; exit 7")
    launch_and_kill(local, request)
    local.ingest.wait_for(lambda: "still here" in local.ingest.texts())
    assert local.ingest.end["exit_code"] == 7


def test_a_launched_runner_is_no_child_of_this_process_and_leaves_no_zombie(
    local: LocalRig,
) -> None:
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
        patch.setattr("jobs.backends.local.backend.start_nodes", interrupt)
        local.backend.launch(request)
    assert local.backend.observe(request.cluster_name).phase is ClusterPhase.GONE
    assert local.remains(request.cluster_name)
    local.another_process().launch(request)
    assert local.ingest.end["reason"] == "COMPLETED"


def test_a_launch_cut_off_between_two_nodes_is_repeated_for_the_other(
    local: LocalRig, monkeypatch
) -> None:
    request = local.request("short", nodes=2)

    def start_first(starts, *rest) -> None:
        start_nodes(starts[:1], *rest)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("jobs.backends.local.backend.start_nodes", start_first)
        local.backend.launch(request)
    assert local.backend.observe(request.cluster_name).phase is ClusterPhase.GONE
    local.another_process().launch(request)
    assert local.ingest.end["reason"] == "COMPLETED"
    assert {frame["rank"] for frame in local.ingest.of_kind("exit")} == {0, 1}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


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


def test_an_upload_with_the_name_of_a_runner_file_reveals_no_path_of_this_machine(
    local: LocalRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source" / "x").mkdir(parents=True)
    local.uploads["upload:code"] = pack(tmp_path / "source", tmp_path / "code.tar.gz").path
    monkeypatch.setattr(local_folders, "OWN_NAMES", ())  # as before it was refused
    uploads = (UploadSource("upload:code", "~/attempt.json"),)
    with pytest.raises(BackendError, match="could not take the job") as caught:
        local.backend.launch(replace(local.request("short"), uploads=uploads))
    assert str(local.folder) not in caught.value.message


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


def test_a_record_that_a_power_cut_left_empty_keeps_no_other_job_from_starting(
    local: LocalRig,
) -> None:
    broken = local.path("mptest-broken")
    broken.mkdir(parents=True)
    (broken / "cluster.json").touch()
    local.backend.launch(local.request("short"))
    assert local.ingest.end["reason"] == "COMPLETED"
    assert local.backend.observe(broken.name).phase is ClusterPhase.GONE
    local.backend.tear_down(broken.name)
    assert not broken.exists()


def test_another_boot_of_the_machine_leaves_no_runner_alive(local: LocalRig) -> None:
    request = local.request("short")
    local.backend.launch(request)
    wait_for_phase(local.backend, request.cluster_name, ClusterPhase.ENDED)
    mark = local.path(request.cluster_name) / "started-0"
    own_ticks = process_of(os.getpid()).started
    mark.write_text(f"another-boot {os.getpid()} {own_ticks}\n")
    assert local.backend.observe(request.cluster_name).phase is ClusterPhase.ENDED


def test_nodes_meet_on_another_port_where_a_program_listens_on_theirs(local: LocalRig) -> None:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        port = listener.getsockname()[1]
        request = local.request_program(
            "echo $SKYPILOT_NODE_RANK", nodes=2, portal={"port": port - 1}
        )
        local.backend.launch(request)
        assert local.ingest.end["reason"] == "COMPLETED"
    remarks = local.ingest.texts("portal")
    said = [text for text in remarks if f"Port {port} is used by process" in text]
    assert len(said) == 1


def test_a_runner_that_cannot_start_says_why(local: LocalRig) -> None:
    request = local.request("short")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.backends.attempt_file.ports_of", lambda _: (22222, "no number", 22224))
        local.backend.launch(request)
    wait_for_phase(local.backend, request.cluster_name, ClusterPhase.ENDED)
    assert "attempt.json" in local.backend.observe(request.cluster_name).nodes[0].detail


def test_a_name_that_was_torn_down_is_never_launched_again(local: LocalRig) -> None:
    request = local.request("long")
    local.backend.launch(request)
    local.backend.tear_down(request.cluster_name)
    # A process that was held up just before its launch goes on now.
    with pytest.raises(BackendError, match="torn down"):
        local.another_process().launch(request)
    assert local.backend.observe(request.cluster_name).phase is ClusterPhase.GONE
    assert not local.remains(request.cluster_name)


def test_a_tear_down_comes_before_a_launch_that_was_held_up(local: LocalRig) -> None:
    request = local.request("long")
    local.backend.tear_down(request.cluster_name)
    with pytest.raises(BackendError, match="torn down"):
        local.backend.launch(request)
    assert not local.remains(request.cluster_name)


def test_a_process_that_hangs_with_a_cluster_takes_no_other_with_it(
    local: LocalRig, monkeypatch
) -> None:
    request = local.request("long")
    monkeypatch.setattr(local_folders, "LOCK_PATIENCE_S", 0.1)
    folder = local_folders.ClusterFolder(local.folder / request.cluster_name)
    with folder.locked():
        assert local.backend.observe(request.cluster_name).phase is ClusterPhase.STARTING
        for verb in (lambda: local.backend.launch(request), lambda: tear_down(local, request)):
            with pytest.raises(BackendUnavailableError, match="busy"):
                verb()


def tear_down(local: LocalRig, request) -> None:
    local.backend.tear_down(request.cluster_name)


def test_the_verdict_is_found_even_if_every_frame_was_acknowledged(local: LocalRig) -> None:
    request = local.request_program("echo done; exit 7")
    local.backend.launch(request)
    assert local.ingest.end["exit_code"] == 7
    wait_for_phase(local.backend, request.cluster_name, ClusterPhase.ENDED)
    frames = [json.loads(frame) for frame in local.backend.leftovers(request.cluster_name).frames]
    assert [(frame["kind"], frame["exit_code"]) for frame in frames] == [("end", 7)]
