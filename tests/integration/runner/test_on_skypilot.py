"""The runner as SkyPilot starts it: its variables, its files, shared and separate homes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.boot import boot_script
from monarch_client.runner.journal.journal import read_leftovers
from monarch_client.skypilot.log_frames import PacketFinder
from monarch_client.sync.archive import pack
from tests.fake_ca import make_authority
from tests.runner_harness import wait_until
from tests.skypilot_nodes import SkyPilotJob, SkyPilotNodes

MakeNodes = Callable[..., SkyPilotNodes]
SHOW = 'echo "$SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES, $SKYPILOT_NUM_GPUS_PER_NODE"'


@pytest.mark.feature("S3.1")
@pytest.mark.parametrize("shared_home", [False, True])
def test_every_node_finds_its_place_and_its_variables(
    make_nodes: MakeNodes, shared_home: bool
) -> None:
    nodes = make_nodes(3, shared_home=shared_home)
    job = nodes.job(
        setup='echo "setup $SKYPILOT_SETUP_NODE_RANK, $SKYPILOT_SETUP_NUM_GPUS_PER_NODE"; '
        "echo $SECRET",
        run=f"{SHOW}; echo $SKYPILOT_NODE_IPS; echo $SKYPILOT_TASK_ID $SECRET $MINE > result",
        envs={"MINE": "yes"},
        tls=make_authority(),
    )
    job.environment["SECRET"] = "whisper"
    assert job.run()["reason"] == "COMPLETED"
    for rank in range(3):
        assert job.ingest.texts("setup", rank) == [f"setup {rank}, 2", "whisper"]
        assert job.ingest.texts("stdout", rank) == [f"{rank} of 3, 2", " ".join(nodes.addresses)]
        assert (job.workdir(rank) / "result").read_text() == "sky-2026 whisper yes\n"
        assert stat.S_IMODE((job.brought(rank) / "attempt.json").stat().st_mode) == 0o600
        assert job.errors(rank) == ""
    assert only_verdict_in(job)["reason"] == "COMPLETED"
    assert (job.printed(1), job.printed(2)) == (b"", b"")
    assert job.processes() == []


def test_a_failing_job_is_reported_in_frames_and_not_by_the_runners_exit_code(
    make_nodes: MakeNodes,
) -> None:
    job = make_nodes(2).job(run="exit $((7 * SKYPILOT_NODE_RANK))")
    end = job.run()
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", 7)


@pytest.mark.feature("S2.4")
def test_folders_lie_in_their_places_before_setup(make_nodes: MakeNodes, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "bin").mkdir(parents=True)
    (source / "bin" / "go").write_text("#!/bin/sh\necho gone\n")
    (source / "bin" / "go").chmod(0o755)
    (source / "link").symlink_to("bin/go")
    archive = tmp_path / "source.tar.gz"
    pack(source, archive)
    # Both nodes write to the same home and the same absolute place at once.
    nodes = make_nodes(2, shared_home=True)
    job = nodes.job(setup="./link; ~/data/bin/go", run=f"cat {tmp_path}/abs/link | head -1")
    for target in ("workdir", "~/data", f"{tmp_path}/abs"):
        job.brings(archive, target)
    assert job.run()["reason"] == "COMPLETED"
    for rank in range(2):
        assert job.ingest.texts("setup", rank) == ["gone", "gone"]
        assert job.ingest.texts("stdout", rank) == ["#!/bin/sh"]
    left = [path.name for path in (tmp_path / "abs").rglob("*")]
    assert sorted(left) == ["bin", "go", "link"]


def test_a_folder_that_cannot_be_unpacked_ends_the_attempt_and_is_named(
    make_nodes: MakeNodes, tmp_path: Path
) -> None:
    job = make_nodes(1).job(setup="touch done")
    (tmp_path / "torn.tar.gz").write_bytes(b"\x1f\x8b nothing")
    job.brings(tmp_path / "torn.tar.gz", "~/data")
    end = job.run()
    assert end["reason"] == "SETUP"
    assert "~/data" in end["message"]
    assert not (job.workdir() / "done").exists()


def test_every_node_fetches_the_repository_before_setup(
    make_nodes: MakeNodes, tmp_path: Path
) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(tmp_path)]
    (tmp_path / "train.py").write_text("print('trained')")
    for command in (["init", "-qb", "main"], ["add", "train.py"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    nodes = make_nodes(2)
    source = {"url": f"file://{tmp_path}", "ref": "main"}
    for _ in range(2):  # the second finds the first's stamp of setup, which says nothing of main
        job = nodes.job(git=source, setup="test -f train.py; echo ready", run="python3 train.py")
        assert job.run()["reason"] == "COMPLETED"
        for rank in range(2):
            fetched, ready = job.ingest.texts("setup", rank)
            assert fetched.startswith(f"workdir: file://{tmp_path} at ")
            assert ready == "ready"
            assert job.ingest.texts("stdout", rank) == ["trained"]
    job = nodes.job(git={**source, "ref": "gone"}, setup="touch ~/done")
    end = job.run()
    assert end["reason"] == "SETUP"
    assert "could not fetch the work directory" in end["message"]
    assert "gone: there is no branch, tag or commit gone" in end["message"]
    assert not (nodes.homes[0] / "done").exists()


def ran_setup(job: SkyPilotJob) -> bool:
    assert job.run()["reason"] == "COMPLETED"
    return job.ingest.texts("setup") != []


@pytest.mark.feature("S3.2")
def test_setup_that_succeeded_here_and_has_not_changed_is_skipped(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(2)
    same = {"setup": "echo installing; echo $MINE >> ~/installed", "envs": {"MINE": "a"}}
    assert ran_setup(nodes.job(**same))
    again = nodes.job(**same)
    assert not ran_setup(again)
    assert again.stages()["setup"] == "setup skipped: unchanged since attempt 1"
    for rank in range(2):
        assert again.ingest.texts("portal", rank) == ["setup skipped: unchanged since attempt 1"]
        assert (nodes.homes[rank] / "installed").read_text() == "a\n"
    on_some = nodes.job(**same, on=1)
    assert not ran_setup(on_some)
    other_job = nodes.job(**same, job_id=43)
    assert not ran_setup(other_job)
    assert "unchanged since attempt 1 of job 42" in other_job.stages()["setup"]


@pytest.mark.parametrize(
    "change",
    [
        {"setup": "echo installing more"},
        {"envs": {"MINE": "b"}},
        {"secrets": ["SECRET"]},
        {"setup_always": True},
    ],
)
def test_setup_runs_again_when_anything_it_sees_has_changed(make_nodes: MakeNodes, change) -> None:
    nodes = make_nodes(1)
    same = {"setup": "echo installing", "envs": {"MINE": "a"}}
    assert ran_setup(nodes.job(**same))
    changed = nodes.job(**{**same, **change})
    changed.environment["SECRET"] = "new"
    assert ran_setup(changed)


def test_setup_runs_again_when_a_folder_has_changed(make_nodes: MakeNodes, tmp_path: Path) -> None:
    nodes = make_nodes(1)
    ran = []
    for number, text in enumerate(["torch", "torch", "numpy"]):
        source = tmp_path / f"source-{number}"
        source.mkdir()
        (source / "requirements.txt").write_text(text)
        pack(source, tmp_path / f"{number}.tar.gz")
        job = nodes.job(setup="cat requirements.txt")
        job.brings(tmp_path / f"{number}.tar.gz", "workdir")
        ran.append(ran_setup(job))
    assert ran == [True, False, True]


def test_what_another_setup_may_have_undone_is_done_again(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(1)
    ran = [ran_setup(nodes.job(setup=f"echo {what}")) for what in ("torch1", "torch2", "torch1")]
    assert ran == [True, True, True]


def test_a_setup_that_failed_is_not_skipped(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(1)
    assert nodes.job(setup="echo no; exit 3").run()["reason"] == "SETUP"
    assert nodes.job(setup="echo no; exit 3").run()["reason"] == "SETUP"


def test_a_setup_that_leaves_files_in_its_work_directory_runs_every_time(
    make_nodes: MakeNodes,
) -> None:
    nodes = make_nodes(1)
    setup = {"setup": "echo building; mkdir -p .venv __pycache__; touch .venv/x"}
    assert ran_setup(nodes.job(**setup))
    again = nodes.job(**setup)
    assert ran_setup(again)
    (remark,) = again.ingest.texts("portal")
    assert remark == "setup runs again: in attempt 1 it left .venv in the workdir"
    assert (again.workdir() / ".venv" / "x").exists()


def test_the_portals_answer_ends_the_attempt_on_every_node_within_its_grace(
    make_nodes: MakeNodes,
) -> None:
    job = make_nodes(2).job(run="trap '' TERM; echo up; while :; do sleep 0.1; done")
    job.config["timeouts"]["grace_s"] = 300
    job.start()
    job.ingest.wait_for(lambda: len(job.ingest.texts()) == 2)
    job.ingest.orders = {"grace_s": 0.5}
    assert job.wait(30) == [0, 0]
    end = job.ingest.end
    assert end["reason"] == "CANCELLED_BY_USER"
    assert "the portal" in end["message"]
    assert len(job.ingest.of_kind("end")) == 1
    assert job.processes() == []


def frames_in(job: SkyPilotJob) -> list[bytes]:
    finder = PacketFinder(job.attempt_id)
    packets = [*finder.feed(job.printed()), *finder.close()]
    assert finder.damaged == 0
    # What is printed twice is known by its numbers.
    return list(dict.fromkeys(frame for packet in packets for frame in packet.frames))


def only_verdict_in(job: SkyPilotJob) -> dict[str, Any]:
    """Return the printed verdict of an attempt that pushed its other frames."""
    (frame,) = map(json.loads, frames_in(job))
    assert frame["kind"] == "end"
    assert frame["seq"] > max(each["seq"] for each in job.ingest.frames if each["rank"] == 0)
    found: dict[str, Any] = frame
    return found


@pytest.mark.parametrize("carrier", ["pull", "auto"])
def test_where_the_portal_is_out_of_reach_rank_0_prints_everything(
    make_nodes: MakeNodes, carrier: str
) -> None:
    job = make_nodes(2).job(
        run="seq 3000; head -c 50000 /dev/urandom | base64 -w 0; exit 3", carrier=carrier
    )
    job.ingest.stop()
    job.start()
    assert job.wait() == [0, 0]
    frames = frames_in(job)
    assert frames == list(read_leftovers(job.root() / "state" / "journal"))
    for frame in frames:
        job.ingest.take(frame)
    assert job.ingest.holes == []
    assert job.ingest.frames[-1]["kind"] == "end"
    for rank in range(2):
        assert job.ingest.texts("stdout", rank)[:3000] == [str(n) for n in range(1, 3001)]
    assert (job.ingest.end["reason"], job.ingest.end["exit_code"]) == ("USER_CODE", 3)
    assert job.printed(1) == b""
    assert max(map(len, job.printed().splitlines())) <= 8192
    if carrier == "auto":
        assert "does not reach the portal" in job.ingest.texts("portal", 0)[0]


def test_where_the_portal_answers_auto_means_push(make_nodes: MakeNodes) -> None:
    job = make_nodes(1).job(run="echo hi", carrier="auto")
    assert job.run()["reason"] == "COMPLETED"
    assert only_verdict_in(job)["reason"] == "COMPLETED"
    assert job.ingest.texts() == ["hi"]


def test_whatever_answers_in_the_portals_place_is_not_the_portal(make_nodes: MakeNodes) -> None:
    job = make_nodes(1).job(run="echo hi", carrier="auto")
    job.ingest.faults = [403] * 1000
    job.start()
    assert job.wait() == [0]
    assert b"CANCELLED" not in b"".join(frames_in(job))
    assert b'"text":"hi"' in b"".join(frames_in(job))


def test_a_runner_that_follows_a_killed_one_prints_on(make_nodes: MakeNodes) -> None:
    job = make_nodes(1).job(run="echo up; sleep 300", carrier="pull")
    job.start()
    wait_until(lambda: any(b'"text":"up"' in frame for frame in frames_in(job)))
    children = Path("/proc", str(job.runners[0].pid), "task", str(job.runners[0].pid), "children")
    (runner,) = map(int, children.read_text().split())
    os.kill(runner, signal.SIGKILL)
    assert job.wait() == [0]
    frames = frames_in(job)
    assert frames == list(read_leftovers(job.root() / "state" / "journal"))
    assert b'"kind":"end"' in frames[-1]


def booted(folder: Path, path: str) -> tuple[int, str]:
    """Run the boot script of attempt 9 with only `path`; return its exit code and its message."""
    script = boot_script(9)
    for place in ("/usr/bin/python3", "/usr/local/bin/python3", "/opt/conda/bin/python3"):
        assert place in script
        script = script.replace(place, "/nowhere/python3")
    result = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env={"HOME": str(folder), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout == ""
    return result.returncode, result.stderr


def test_a_node_without_the_attempts_files_says_so(tmp_path: Path) -> None:
    code, said = booted(tmp_path, "/usr/bin:/bin")
    assert code == 1
    assert "mp-9/runner.pyz is not on" in said


@pytest.mark.feature("S2.3")
def test_any_new_enough_python_is_used_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mp-9").mkdir()
    (tmp_path / "mp-9" / "runner.pyz").touch()
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("cat", "hostname"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    code, said = booted(tmp_path, str(tools))
    assert code == 1
    assert said.startswith("mportal: no Python 3.8 or newer on ")
    # SkyPilot notes where its own interpreter is.
    new = tmp_path / "new"
    new.write_text('#!/bin/sh\n[ "$3" = -c ] || echo "started $*" >&2\n')
    new.chmod(0o755)
    (tmp_path / ".sky").mkdir()
    (tmp_path / ".sky" / "python_path").write_text(f"{new}\n")
    code, said = booted(tmp_path, str(tools))
    assert code == 0
    assert f"--config {tmp_path}/mp-9/attempt.json --root {tmp_path}/.mportal/9" in said
