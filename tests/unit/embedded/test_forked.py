"""Parts of the portal as forks: their output, their end, and that they do not outlive us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from monarch_portal.embedded import child, forked
from monarch_portal.embedded.process_table import ProcessRecord
from tests.waiting import eventually

# Forking the test process itself would fork its threads: a fresh interpreter forks instead.
PROGRAM = """
import sys, time
from pathlib import Path
from monarch_portal.embedded import forked
fork = forked.fork("web", lambda: {body}, Path(sys.argv[1]))
{after}
"""


def run(log: Path, body: str, after: str) -> subprocess.Popen[str]:
    program = PROGRAM.format(body=body, after=after)
    argv = [sys.executable, "-c", program, str(log)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("body", "code"), [("None", 0), ("sys.exit(3)", 3), ("1/0", 1), ("sys.exit('no')", 1)]
)
def test_the_exit_code_is_that_of_what_was_run(tmp_path, body, code):
    done = run(tmp_path / "log", body, "print(fork.wait())")
    assert done.communicate(timeout=20)[0] == f"{code}\n"


def test_its_output_and_its_traceback_go_to_its_log(tmp_path):
    log = tmp_path / "log"
    run(log, "(print('hello'), 1/0)", "fork.wait()").communicate(timeout=20)
    assert log.read_text().startswith("hello\n")
    assert "ZeroDivisionError" in log.read_text()


def test_it_is_ended_when_its_parent_is_killed(tmp_path):
    parent = run(tmp_path / "log", "time.sleep(60)", "print(fork.pid, flush=True); fork.wait()")
    assert parent.stdout
    record = ProcessRecord.of("web", int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    assert eventually(lambda: not record.lives)


def test_a_process_that_ignores_the_polite_signal_is_killed(tmp_path):
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    code = f"{ignore}; print('x', flush=True); import time; time.sleep(60)"
    log = tmp_path / "log"
    process = child.start(child.Program([sys.executable, "-c", code], log=log))
    assert eventually(lambda: log.read_text() == "x\n")
    child.stop(process, signals=(signal.SIGTERM,), patience_s=0.1)
    assert process.poll() == -signal.SIGKILL


def test_waiting_for_a_fork_that_goes_on_times_out():
    pid = os.spawnvp(
        os.P_NOWAIT, sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"]
    )
    fork = forked.Fork(pid)
    with pytest.raises(subprocess.TimeoutExpired):
        fork.wait(0.05)
    fork.send_signal(signal.SIGKILL)
    assert fork.wait() == -signal.SIGKILL
    fork.send_signal(signal.SIGKILL)


def test_a_log_on_a_full_disk_ends_the_fork_all_the_same(tmp_path):
    # The fork must never go on in its parent's code.
    program = """
import sys
from pathlib import Path
from monarch_portal.embedded import forked
try:
    forked.fork("web", lambda: print("no room for this"), Path("/dev/full")).wait()
except OSError:
    Path(sys.argv[1]).touch()
"""
    went_on = tmp_path / "went-on"
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    argv = [sys.executable, "-c", program, str(went_on)]
    subprocess.run(argv, env=buffered, check=True, timeout=20)
    assert not went_on.exists()
