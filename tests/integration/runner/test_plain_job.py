"""Plain jobs: `run` on every node, exact exit codes, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runner_harness import RunnerRig, free_port, wait_until

MakeRig = Callable[..., RunnerRig]
# Rank 0 fails as soon as rank 1 has gone, as programs with collectives do.
EXCHANGE = """
import os, socket, time
if os.environ["SKYPILOT_NODE_RANK"] == "0":
    connection, _ = socket.create_server(("127.0.0.1", {0})).accept()
    print("connected", flush=True)
    connection.recv(1)
    raise ConnectionResetError("the other rank has gone")
while True:
    try:
        connection = socket.create_connection(("127.0.0.1", {0}))
        time.sleep(300)
    except ConnectionRefusedError:
        time.sleep(0.05)
"""


def exit_codes(rig: RunnerRig) -> dict[int, int]:
    return {frame["rank"]: frame["exit_code"] for frame in rig.ingest.of_kind("exit")}


def assert_clean(rig: RunnerRig) -> None:
    """Check that no process is left, no number is missing, and no runner printed an error."""
    assert rig.processes() == []
    assert rig.ingest.holes == []
    assert [rig.log(rank) for rank in rig.runners] == [""] * len(rig.runners)


@pytest.mark.feature("S3.1")
def test_every_node_runs_setup_then_run_with_the_right_variables(make_rig: MakeRig) -> None:
    rig = make_rig(
        nodes=3,
        setup="echo setup $SKYPILOT_SETUP_NODE_RANK; touch prepared; sleep 0.$SKYPILOT_NODE_RANK",
        run='ls prepared; echo "$SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES"; '
        "echo ips $SKYPILOT_NODE_IPS; echo $MPORTAL_PROJECT $MPORTAL_JOB_ID $MPORTAL_ATTEMPT $MINE",
        envs={"MINE": "yes"},
    )
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("COMPLETED", 0)
    addresses = " ".join(node["address"] for node in rig.config["nodes"])
    for rank in range(3):
        assert rig.ingest.texts("setup", rank) == [f"setup {rank}"]
        assert rig.ingest.texts("stdout", rank) == [
            "prepared",
            f"{rank} of 3",
            f"ips {addresses}",
            "default 42 1 yes",
        ]
    # The barrier: no node ran before all nodes were set up.
    last_setup = max(frame["t"] for frame in rig.ingest.frames if frame.get("stream") == "setup")
    first_run = min(frame["t"] for frame in rig.ingest.frames if frame.get("stream") == "stdout")
    assert last_setup <= first_run
    assert rig.ingest.frames[-1]["kind"] == "end"
    assert_clean(rig)


@pytest.mark.feature("S3.1")
def test_exit_codes_are_exact_on_every_rank(make_rig: MakeRig) -> None:
    script = 'touch "../at-$SKYPILOT_NODE_RANK"; ' + "".join(
        f"while [ ! -e ../../rank-{rank}/at-{rank} ]; do sleep 0.01; done; " for rank in range(3)
    )
    # All have begun before the first fails: the failure of one ends the others.
    rig = make_rig(nodes=3, run=script + "[ $SKYPILOT_NODE_RANK = 1 ] && exit 42; exec sleep 60")
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", 42)
    assert "rank 1" in end["message"]
    assert exit_codes(rig) == {0: 143, 1: 42, 2: 143}
    assert_clean(rig)


@pytest.mark.feature("S3.3")
def test_work_for_the_head_only_is_done_once(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run='if [ "$SKYPILOT_NODE_RANK" = 0 ]; then echo merged; fi')
    assert rig.run()["reason"] == "COMPLETED"
    assert rig.ingest.texts() == ["merged"]
    assert exit_codes(rig) == {0: 0, 1: 0}


def test_a_failing_setup_names_its_rank_and_code(make_rig: MakeRig) -> None:
    setup = "[ $SKYPILOT_NODE_RANK = 1 ] && { echo no such package >&2; exit 9; }; true"
    rig = make_rig(nodes=2, setup=setup, run="echo never")
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("SETUP", 9)
    assert "rank 1" in end["message"]
    assert "no such package" in end["evidence"]
    assert rig.ingest.texts() == []
    assert_clean(rig)


def test_run_finds_what_setup_wrote_into_the_users_file(make_rig: MakeRig) -> None:
    setup = "echo 'export WORD=kept SKYPILOT_NODE_RANK=7' >> ~/.bashrc"
    rig = make_rig(setup=setup, run='echo "$WORD on $SKYPILOT_NODE_RANK"')
    assert rig.run()["reason"] == "COMPLETED"
    assert rig.ingest.texts() == ["kept on 0"]


def test_no_user_of_the_machine_reads_scripts_in_command_lines(make_rig: MakeRig) -> None:
    setup = "word=word-of-setup; echo up; until [ -e ../go ]; do sleep 0.01; done"
    rig = make_rig(setup=setup, run="word=word-of-run; echo up; sleep 300 & wait")
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts("setup") == ["up"])
    assert b"word-of-" not in command_lines()
    (rig.root() / "go").touch()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up"])
    assert b"word-of-" not in command_lines()
    rig.stop_rank(0)
    rig.wait()


def command_lines() -> bytes:
    """Return the arguments of every process on the machine."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += path.read_bytes()
    return found


def test_a_setup_that_hangs_is_ended(make_rig: MakeRig) -> None:
    rig = make_rig(setup="echo waiting for the moon; sleep 60", timeouts={"setup_s": 0.5})
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("SETUP", None)
    assert "waiting for the moon" in end["evidence"]
    assert_clean(rig)


def test_as_with_skypilot_a_failing_line_does_not_end_a_script(make_rig: MakeRig) -> None:
    rig = make_rig(setup="false; echo set up", run="false; echo ran")
    assert rig.run()["reason"] == "COMPLETED"
    assert rig.ingest.texts() == ["ran"]


def test_nothing_survives_on_any_node(make_rig: MakeRig) -> None:
    run = "sleep 300 & setsid bash -c 'setsid sleep 300 & sleep 300' & (trap '' TERM; sleep 300) &"
    rig = make_rig(nodes=2, setup="setsid sleep 300 & true", run=run + "\nexit 0")
    assert rig.run()["reason"] == "COMPLETED"
    assert_clean(rig)


def test_lines_of_processes_that_share_a_pipe_are_shown_at_once_and_whole(
    make_rig: MakeRig,
) -> None:
    program = "import time\nfor i in range(300): print('x' * 50)\ntime.sleep(60)"
    rig = make_rig(run="for i in 1 2 3; do python count.py & done; wait")
    rig.write("count.py", program)
    rig.start()
    rig.ingest.wait_for(lambda: len(rig.ingest.texts()) == 900)
    assert set(rig.ingest.texts()) == {"x" * 50}
    rig.stop_rank(0)
    rig.wait()


def test_whatever_users_print_arrives_as_it_was(make_rig: MakeRig) -> None:
    rig = make_rig(
        run=r"printf 'caf\351\n'; head -c 10000000 /dev/zero | tr '\0' x; echo; "
        "seq 20000 >&2; printf 'no newline'",
    )
    rig.run()
    assert rig.ingest.texts("stderr") == [str(number) for number in range(1, 20001)]
    pieces = [frame for frame in rig.ingest.of_kind("line") if frame["stream"] == "stdout"]
    assert (pieces[0]["text"], pieces[-1]["text"]) == ("caf\ufffd", "no newline")
    long = pieces[1:-1]
    assert sum(len(piece["text"]) for piece in long) == 10_000_000
    assert [piece["more"] for piece in long] == [True] * (len(long) - 1) + [False]
    assert_clean(rig)


@pytest.mark.parametrize("rank", [0, 1])
def test_sigterm_to_any_runner_ends_the_attempt_in_order(make_rig: MakeRig, rank: int) -> None:
    rig = make_rig(nodes=2, run="trap 'echo tidied; exit 3' TERM; echo up; sleep 60 & wait")
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up", "up"])
    rig.stop_rank(rank)
    assert set(rig.wait().values()) == {0}
    assert rig.ingest.end["reason"] == "CANCELLED_BY_USER"
    assert rig.ingest.texts().count("tidied") == 2
    assert exit_codes(rig) == {0: 3, 1: 3}
    assert_clean(rig)


def test_who_ignores_sigterm_is_killed_after_the_grace(make_rig: MakeRig) -> None:
    rig = make_rig(
        run="trap '' TERM; echo up; while :; do sleep 0.1; done", timeouts={"grace_s": 0.3}
    )
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up"])
    rig.stop_rank(0)
    rig.wait(15)
    assert exit_codes(rig) == {0: 137}
    assert_clean(rig)


def test_a_program_that_outlives_its_shell_has_the_same_grace(make_rig: MakeRig) -> None:
    # The shell ends by SIGTERM at once; its program goes on printing.
    program = "trap 'echo stopped' TERM; echo up; while :; do echo line; sleep 0.05; done"
    rig = make_rig(run=f'bash -c "{program}"; true', timeouts={"grace_s": 0.5})
    rig.start()
    rig.ingest.wait_for(lambda: "line" in rig.ingest.texts())
    rig.stop_rank(0)
    stopped_at = time.monotonic()
    rig.wait(30)
    assert time.monotonic() - stopped_at < 5
    assert "stopped" in rig.ingest.texts()
    assert_clean(rig)


def test_a_second_runner_on_a_node_goes_at_once(make_rig: MakeRig) -> None:
    rig = make_rig(run="echo up; sleep 60")
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up"])
    first = rig.runners[0]
    rig.start()
    assert rig.runners[0].wait(10) == 0
    assert first.poll() is None
    first.terminate()
    assert first.wait(10) == 0
    assert rig.ingest.texts() == ["up"]


def runner_process(rig: RunnerRig, rank: int) -> int:
    """Return the working process of a runner, whose parent only guards it."""
    pid = rig.runners[rank].pid
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_runner_leaves_nothing_and_its_loss_is_reported(
    make_rig: MakeRig, rank: int
) -> None:
    rig = make_rig(nodes=2, run="echo up; setsid sleep 300 & sleep 300")
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up", "up"])
    os.kill(runner_process(rig, rank), signal.SIGKILL)
    end = rig.ingest.end
    rig.wait()
    assert end["reason"] == "WORKER_LOST"
    assert f"rank {rank}" in end["message"]
    assert rig.ingest.frames[-1]["kind"] == "end"
    assert_clean(rig)


def test_a_killed_runner_is_named_although_the_other_program_fails_for_it_at_once(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(nodes=2, run="python exchange.py")
    program = EXCHANGE.format(free_port())
    for rank in range(2):
        workdir = rig.root(rank) / "workdir"
        workdir.mkdir(parents=True, exist_ok=True)
        (workdir / "exchange.py").write_text(program)
    rig.start()
    rig.ingest.wait_for(lambda: "connected" in rig.ingest.texts())
    os.kill(runner_process(rig, 1), signal.SIGKILL)
    end = rig.ingest.end
    rig.wait()
    assert (end["reason"], "rank 1" in end["message"]) == ("WORKER_LOST", True), end


def test_a_node_that_is_gone_is_a_lost_worker(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="echo up; sleep 300")
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up", "up"])
    # As when a machine is switched off: nothing there can say a word.
    os.killpg(rig.runners[1].pid, signal.SIGSTOP)
    switched_off = time.monotonic()
    end = rig.ingest.end
    assert end["reason"] == "WORKER_LOST"
    assert "rank 1" in end["message"]
    (lost,) = [frame for frame in rig.ingest.of_kind("worker") if frame["status"] == "LOST"]
    assert (lost["rank"], lost["about"]) == (0, 1)
    assert rig.runners[0].wait(10) == 0
    assert time.monotonic() - switched_off < rig.config["timeouts"]["peer_silence_s"] + 5


def test_peers_of_a_rank_0_that_is_gone_end_themselves(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="echo up; sleep 300", timeouts={"peer_silence_s": 1, "grace_s": 1})
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up", "up"])
    os.killpg(rig.runners[0].pid, signal.SIGSTOP)
    assert rig.runners[1].wait(15) == 0
    assert rig.processes(1) == []


def test_a_peer_that_waits_for_rank_0_in_vain_can_be_stopped(make_rig: MakeRig) -> None:
    rig = make_rig(nodes=2, run="true")
    rig.start(1)
    wait_until((rig.root(1) / "state" / "started").exists)
    rig.stop_rank(1)
    assert rig.wait(15) == {1: 0}


def test_what_lies_on_a_node_of_a_dead_runner_is_delivered_and_reported(make_rig: MakeRig) -> None:
    rig = make_rig(run="echo up; sleep 300")
    rig.start()
    rig.ingest.wait_for(lambda: rig.ingest.texts() == ["up"])
    rig.ingest.stop()
    os.killpg(rig.runners[0].pid, signal.SIGKILL)
    rig.runners[0].wait(10)
    assert rig.processes() != []
    rig.ingest.start()
    rig.start()
    assert rig.runners[0].wait(20) == 0
    assert rig.ingest.end["reason"] == "WORKER_LOST"
    assert rig.ingest.texts() == ["up"]
    assert_clean(rig)


def test_a_job_whose_command_cannot_start_says_so(make_rig: MakeRig) -> None:
    rig = make_rig(run="no-such-program --x")
    end = rig.run()
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", 127)
    assert "no-such-program" in end["evidence"]


def test_the_runner_works_with_the_oldest_python_it_promises(make_rig: MakeRig) -> None:
    oldest = shutil.which("python3.8")
    if not oldest or subprocess.run([oldest, "-c", ""], check=False).returncode:
        pytest.skip("there is no Python 3.8 here")
    rig = make_rig(nodes=2, setup="echo setup", run="echo $SKYPILOT_NODE_RANK")
    rig.start(python=oldest)
    rig.wait()
    assert rig.ingest.end["reason"] == "COMPLETED"
    assert sorted(rig.ingest.texts()) == ["0", "1"]
    assert_clean(rig)


def test_the_verdict_is_stored_on_the_node_for_later_readers(make_rig: MakeRig) -> None:
    rig = make_rig(run="exit 5")
    rig.run()
    verdict = rig.root() / "state" / "verdict.json"
    wait_until(verdict.exists)
    assert '"exit_code": 5' in verdict.read_text()
