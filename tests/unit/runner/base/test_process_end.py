"""The clean-up of what a process started, at real signals to real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from monarch_client.runner.base import process_end
from tests.each_case import check_each
from tests.programs import CHECKOUT

PRELUDE = """
import os, signal, sys, threading, time
from monarch_client.runner.base import process_end

def strike(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)

def say(*words):
    print(*words, flush=True)

TERM, HUP, INT = signal.SIGTERM, signal.SIGHUP, signal.SIGINT
"""
# Programs, how they end, and what they say.
ENDS: dict[str, tuple[str, int, str]] = {
    "a signal leaves blocks, then ends what is armed": (
        """
process_end.arm("key", lambda: say("ended"))
try:
    strike(TERM)
finally:
    say("left")
""",
        143,
        "left ended",
    ),
    "the same request twice leaves blocks once": (
        """
process_end.arm("key", lambda: say("ended"))
try:
    strike(TERM, HUP)
finally:
    strike(TERM)
    say("left")
""",
        143,
        "left ended",
    ),
    "a second request while it ends does not cut it off": (
        """
def end():
    strike(INT)
    say("ended")

with process_end.ending(end):
    strike(TERM)
""",
        -2,
        "ended",
    ),
    "a signal while something is started is answered once it is known": (
        """
started = []
with process_end.ending(lambda: say(*started)):
    with process_end.undisturbed():
        strike(HUP)
        started.append("job")
    say("never")
""",
        129,
        "job",
    ),
    "an end that fails is tried again when the process ends, and others are ended too": (
        """
process_end.arm("first", lambda: strike(INT))
process_end.arm("second", lambda: say("second"))
strike(TERM)
""",
        143,
        "second",
    ),
    "a normal end counts": ("process_end.arm('key', lambda: say('ended'))", 0, "ended"),
    "a request that something has caught is repeated": (
        """
process_end.leave_on_signals()
process_end.leave_again()
try:
    strike(HUP)
except SystemExit:
    process_end.leave_again()
""",
        129,
        "",
    ),
    "a fork ends nothing, and a signal ends it": (
        """
process_end.arm("key", lambda: say("ended"))
child = os.fork()
if not child:
    strike(TERM)
say(os.waitpid(child, 0)[1])
""",
        0,
        "15 ended",
    ),
    "a last act comes before the signal's usual effect": (
        """
process_end.arm_last_act("key", lambda: say("acted"))
try:
    strike(TERM)
finally:
    say("never")
""",
        -15,
        "acted",
    ),
    "a last act is for signals only": (
        "process_end.arm_last_act('key', lambda: say('never'))",
        0,
        "",
    ),
    "a command is left as by sys.exit": (
        """
process_end.leave_on_signals()
try:
    strike(HUP)
finally:
    say("left")
""",
        129,
        "left",
    ),
    "one signal waits": (
        """
with process_end.undisturbed():
    strike(INT)
    say("whole")
""",
        -2,
        "whole",
    ),
    "one signal waits also where the block fails, and what catches that does not go on": (
        """
process_end.arm("key", lambda: say("ended"))
try:
    with process_end.undisturbed():
        strike(TERM)
        raise OSError("refused")
except OSError:
    say("never")
""",
        143,
        "ended",
    ),
    "the third does not": (
        """
with process_end.undisturbed():
    strike(INT, INT, INT)
    say("never")
""",
        -2,
        "",
    ),
    "a closed terminal sends one request in many signals": (
        """
with process_end.undisturbed():
    strike(HUP, HUP, TERM, HUP)
    say("whole")
""",
        -1,
        "whole",
    ),
}


def test_what_is_armed_is_ended_however_the_process_ends() -> None:
    def ends_well(name: str) -> None:
        program, code, said = ENDS[name]
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + program],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        assert (done.returncode, done.stdout.split()) == (code, said.split()), done.stderr

    check_each(ENDS, ends_well)


def test_a_handler_of_the_programs_own_is_left_alone() -> None:
    mine = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # A shell's nohup has it ignored from the start.
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    key = object()
    try:
        process_end.arm(key, lambda: None)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        process_end.disarm(key)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, mine)
        signal.signal(signal.SIGHUP, hangup)
