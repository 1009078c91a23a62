"""`mportal_runtime` in a driver's interpreter, without Monarch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import monarch_client.runner.scripts

RUNTIME = Path(monarch_client.runner.scripts.__file__).parent
# Exceptions with Monarch's names: what the report looks at.
STAND_INS = """
import sys, time
class ActorError(Exception): pass
class SupervisionError(RuntimeError): pass
TEXT = '''Actor call a.bad failed.
 Traceback of where the remote call failed (most recent call last):
  File "/w/train.py", line 9, in bad
    raise ValueError("bad number 7")
ValueError: bad number 7
'''
MEMBER = "<root>.<__main__.Probe probe{'hosts': 1/2, 'procs': 0/1}>"
FAULT = '''The actor <root>.a has failed:
  actor explicitly aborted due to: Traceback (most recent call last):
    File "/x/site-packages/monarch/actor_mesh.py", line 1675, in handle
      actor.handle_sync(
    File "/w/train.py", line 19, in __init__
      raise ValueError("bad init")
  ValueError: bad init

Stack backtrace:
   0: rust
'''
import mportal_runtime
from mportal_runtime.reporting import end, note_fault
"""


def drive(tmp_path: Path, program: str, **environment: str) -> tuple[int, dict[str, Any], str]:
    """Run a driver; return its exit code, its report ({} if none), and its stderr."""
    report = tmp_path / "report.json"
    script = tmp_path / "driver.py"
    script.write_text(STAND_INS + program)
    env = {"PYTHONPATH": str(RUNTIME), "MPORTAL_REPORT_FILE": str(report), **environment}
    result = subprocess.run(
        [sys.executable, script], env=env, capture_output=True, text=True, timeout=30, check=False
    )
    found = json.loads(report.read_text()) if report.exists() else {}
    return result.returncode, found, result.stderr


def test_an_exception_is_reported_and_still_printed(tmp_path: Path) -> None:
    code, report, stderr = drive(tmp_path, "def f():\n    raise KeyError('no')\nf()")
    assert code == 1
    assert report["kind"] == "user"
    assert report["error"] == "KeyError: 'no'"
    assert report["place"].startswith("driver.py:")
    assert "KeyError: 'no'" in report["trace"]
    assert "Traceback" in stderr


@pytest.mark.parametrize(
    ("program", "kind", "error"),
    [
        ("raise ActorError(TEXT)", "user", "ValueError: bad number 7 (in a.bad)"),
        ("raise SupervisionError(FAULT)", "user", "ValueError: bad init (in actor a)"),
        (
            "raise SupervisionError(FAULT.replace('<root>.a', MEMBER))",
            "user",
            "ValueError: bad init (in actor probe at hosts 1/2, procs 0/1)",
        ),
        (
            "raise ActorError(TEXT.replace('Actor call a.bad failed.', ''))",
            "user",
            "ValueError: bad number 7 (in an actor)",
        ),
        (
            "raise RuntimeError('error spawning actor mesh: statuses: Failed(' + FAULT + ')')",
            "user",
            "ValueError: bad init (in actor a)",
        ),
        ("raise SupervisionError('no status')", "monarch", "SupervisionError: no status"),
        ("raise ValueError('x') from SupervisionError('gone')", "monarch", "ValueError: x"),
        ("raise RuntimeError('mine') from ActorError(TEXT)", "user", "RuntimeError: mine"),
        ("raise KeyboardInterrupt", "user", "KeyboardInterrupt"),
    ],
)
def test_a_fault_of_monarchs_is_distinguished_from_an_error_of_the_users(
    tmp_path: Path, program: str, kind: str, error: str
) -> None:
    _, report, _ = drive(tmp_path, program)
    assert (report["kind"], report["error"]) == (kind, error)


def test_the_place_is_in_the_users_own_file(tmp_path: Path) -> None:
    _, report, _ = drive(tmp_path, "raise SupervisionError(FAULT)")
    assert report["place"] == "train.py:19"


def test_a_fault_interrupts_a_driver_that_waits_for_something_else(tmp_path: Path) -> None:
    code, report, _ = drive(tmp_path, "note_fault('proc gone, no more')\ntime.sleep(60)")
    assert code != 0
    assert (report["kind"], report["error"]) == ("monarch", "proc gone, no more")


def test_an_exception_that_follows_a_fault_says_more(tmp_path: Path) -> None:
    _, report, _ = drive(tmp_path, "note_fault('gone')\nraise SupervisionError('call failed')")
    assert report["error"] == "SupervisionError: call failed"


def test_faults_while_the_driver_ends_are_no_reason(tmp_path: Path) -> None:
    code, report, _ = drive(tmp_path, "end()\nnote_fault('closing')\ntime.sleep(1.2)")
    assert (code, report) == (0, {})


def test_monarchs_own_stack_is_left_out(tmp_path: Path) -> None:
    _, report, _ = drive(tmp_path, "note_fault(FAULT)\ntime.sleep(60)")
    assert "rust" not in report["trace"]
    assert report["kind"] == "user"


def test_outside_a_driver_nothing_is_reported(tmp_path: Path) -> None:
    program = "raise ValueError('x')"
    code, report, _ = drive(tmp_path, program, MPORTAL_REPORT_FILE="")
    assert (code, report) == (1, {})


def test_importing_the_module_does_not_import_monarch(tmp_path: Path) -> None:
    program = "from mportal_runtime import meshes\nassert 'monarch' not in sys.modules"
    code, _, stderr = drive(tmp_path, program)
    assert (code, stderr) == (0, "")


def test_meshes_outside_a_monarch_job_say_where_they_are(tmp_path: Path) -> None:
    _, report, stderr = drive(tmp_path, "from mportal_runtime import meshes\nmeshes.trainers")
    assert "portal.meshes" in stderr
    assert report["kind"] == "user"


def plan(tmp_path: Path, python: str) -> str:
    path = tmp_path / "meshes.json"
    worker = {"rank": 0, "address": "service<2>@tcp://127.0.0.1:1", "python": python}
    meshes = {"trainers": [worker], "generators": [worker]}
    path.write_text(json.dumps({"meshes": meshes, "transport": "tcp://127.0.0.1:0"}))
    return str(path)


def test_an_unknown_mesh_names_those_there_are(tmp_path: Path) -> None:
    program = "mportal_runtime.meshes.trainer"
    _, report, _ = drive(tmp_path, program, MPORTAL_RUNTIME_FILE=plan(tmp_path, ""))
    assert report["error"].endswith("this job has: generators, trainers")


def test_the_names_of_the_meshes_can_be_listed(tmp_path: Path) -> None:
    program = "m = mportal_runtime.meshes\nassert list(m) == dir(m)[::-1] and len(m) == 2, dir(m)"
    code, _, stderr = drive(tmp_path, program, MPORTAL_RUNTIME_FILE=plan(tmp_path, ""))
    assert code == 0, stderr


def test_another_python_is_refused_before_monarch_is_touched(tmp_path: Path) -> None:
    program = "try: mportal_runtime.meshes.trainers\nfinally: assert 'monarch' not in sys.modules"
    _, report, stderr = drive(tmp_path, program, MPORTAL_RUNTIME_FILE=plan(tmp_path, "2.7"))
    mine = "{}.{}".format(*sys.version_info[:2])
    assert report["kind"] == "python_mismatch"
    assert (report["driver_python"], report["worker_python"]) == (mine, "2.7")
    assert "run 2.7" in stderr


def test_reports_of_several_threads_do_not_spoil_each_other(tmp_path: Path) -> None:
    program = """
import threading
threads = [threading.Thread(target=note_fault, args=("f" * 2000,)) for _ in range(30)]
for thread in threads: thread.start()
raise SupervisionError(FAULT)
"""
    for _ in range(3):
        _, report, _ = drive(tmp_path, program)
        assert report["error"] == "ValueError: bad init (in actor a)"
