"""Failures of the child: each call ends, is not carried out twice, and the next one works."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from tests.unit.skypilot.conftest import CHILD, CallerMaker, is_alive
from tests.waiting import eventually


def pid_of(caller: SkyCaller) -> int:
    assert caller.call("echo", {"value": "here"}, 20) == "here"
    pid = caller.child_pid
    assert pid is not None
    return pid


def test_a_child_that_dies_during_a_call_ends_the_call_and_the_next_gets_another(
    caller: SkyCaller,
) -> None:
    first = pid_of(caller)
    with pytest.raises(SkyPilotError, match="may have been carried out") as raised:
        caller.call("die", {}, 20)
    assert raised.value.kind == "interrupted"
    assert pid_of(caller) != first


def test_a_child_killed_while_idle_costs_no_call(caller: SkyCaller) -> None:
    first = pid_of(caller)
    os.kill(first, signal.SIGKILL)
    assert pid_of(caller) != first


def child_that(tmp_path: Path, lines: str) -> tuple[str, ...]:
    """Write a child that begins with these lines, which may `raise SystemExit`; return its argv."""
    script = tmp_path / "child.py"
    ending = (
        'from monarch_client.skypilot.child import main\nmain("tests.unit.skypilot.standin_calls")'
    )
    script.write_text(f"import os\nfrom pathlib import Path\n{lines}\n{ending}\n")
    return (str(script),)


def test_a_call_that_a_dying_child_never_read_is_sent_to_the_next(
    make_caller: CallerMaker, tmp_path: Path
) -> None:
    mark, diary = tmp_path / "mark", tmp_path / "diary"
    lines = f"mark = Path({str(mark)!r})\nif not mark.exists():\n    mark.touch()\n    os._exit(3)"
    caller = make_caller(child=child_that(tmp_path, lines))
    assert caller.call("noted", {"diary": str(diary), "value": 5}, 20) == 5
    assert diary.read_text() == "called\n"


def test_a_child_that_always_dies_at_once_is_an_error_not_a_loop(
    make_caller: CallerMaker, tmp_path: Path
) -> None:
    diary = tmp_path / "starts"
    lines = f"Path({str(diary)!r}).open('a').write('x')\nos._exit(3)"
    caller = make_caller(child=child_that(tmp_path, lines))
    with pytest.raises(SkyPilotError) as raised:
        caller.call("echo", {}, 20)
    assert raised.value.kind == "interrupted"
    assert len(diary.read_text()) <= 3


def test_nonsense_from_a_child_is_passed_over(make_caller: CallerMaker, tmp_path: Path) -> None:
    lines = "\n".join(
        f"os.write(1, {text!r})"
        for text in (b"\xff\xfe\n", b"[1]\n", b'{"id": "x"}\n', b'{"id": 999, "value": 1}\n', b"\n")
    )
    caller = make_caller(child=child_that(tmp_path, lines))
    assert caller.call("echo", {"value": 1}, 20) == 1


def test_a_python_that_does_not_exist_is_said(
    make_caller: CallerMaker, options: CallerOptions
) -> None:
    caller = make_caller(options=replace(options, python="/nowhere/python"))
    with pytest.raises(SkyPilotError, match="can't be started") as raised:
        caller.call("echo")
    assert raised.value.kind == "server_away"
    with pytest.raises(SkyPilotError, match="can't be started"), caller.stream("pieces"):
        pass


def test_an_idle_child_is_ended_and_the_next_call_starts_another(make_caller: CallerMaker) -> None:
    caller = make_caller(idle_s=0.2)
    first = pid_of(caller)
    assert eventually(lambda: not is_alive(first))
    assert pid_of(caller) != first


def test_a_child_with_a_call_under_way_is_not_idle(
    make_caller: CallerMaker, tmp_path: Path
) -> None:
    caller = make_caller(idle_s=0.1)
    args = {"diary": str(tmp_path / "diary"), "until": str(tmp_path / "gate"), "value": 3}
    for _ in range(3):
        with pytest.raises(StillBusyError):
            caller.call("noted", args, 0.5)
    (tmp_path / "gate").touch()
    assert caller.call("noted", args, 20) == 3
    assert (tmp_path / "diary").read_text() == "called\n"


def test_a_call_that_hangs_is_given_up_and_its_child_ends_after_the_others_are_done(
    make_caller: CallerMaker, tmp_path: Path
) -> None:
    caller = make_caller(longest_call_s=1.0)
    first = pid_of(caller)
    never = {"diary": str(tmp_path / "hung"), "until": str(tmp_path / "never")}
    with pytest.raises(SkyPilotError, match="given up") as raised:
        caller.call("noted", never, 20)
    assert raised.value.kind == "interrupted"
    assert pid_of(caller) != first
    assert eventually(lambda: not is_alive(first))


def test_closing_ends_the_child_and_its_open_calls(caller: SkyCaller, tmp_path: Path) -> None:
    pid = pid_of(caller)
    args = {"diary": str(tmp_path / "diary"), "until": str(tmp_path / "never")}
    with pytest.raises(StillBusyError):
        caller.call("noted", args, 0.3)
    caller.close()
    with pytest.raises(SkyPilotError):
        caller.call("noted", args, 20)
    assert eventually(lambda: not is_alive(pid))


def in_fork(act: Callable[[], object]) -> object:
    """Run `act` in a fork of this process and return its result."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, json.dumps(act()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_asks_through_a_child_of_its_own(caller: SkyCaller, tmp_path: Path) -> None:
    first = pid_of(caller)
    args = {"diary": str(tmp_path / "diary"), "until": str(tmp_path / "gate"), "value": 9}
    with pytest.raises(StillBusyError):
        caller.call("noted", args, 0.3)
    forked = in_fork(lambda: (caller.call("echo", {"value": "fork"}, 20), caller.child_pid))
    assert isinstance(forked, list)
    assert forked[0] == "fork"
    assert forked[1] != first
    (tmp_path / "gate").touch()
    assert caller.call("noted", args, 20) == 9
    assert caller.child_pid == first
    assert eventually(lambda: not is_alive(forked[1]))


def test_the_child_ends_when_its_parent_is_killed(options: CallerOptions) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from monarch_client.skypilot.caller import CallerOptions, SkyCaller\n"
        "caller = SkyCaller(CallerOptions(Path(sys.argv[1]), 'http://x'), child=(sys.argv[2],))\n"
        "caller.call('echo', {}, 20); print(caller.child_pid, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(options.home), CHILD[0]], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    assert eventually(lambda: not is_alive(child))
