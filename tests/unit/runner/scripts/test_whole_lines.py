"""The module that is `sitecustomize` in the Pythons of a job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import monarch_client.runner.scripts.whole_lines as module


def run(tmp_path: Path, program: str, *paths: Path, **environment: str) -> str:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    shutil.copy(str(module.__file__), runtime / "sitecustomize.py")
    path = os.pathsep.join(str(entry) for entry in (runtime, *paths))
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_line_is_out_before_the_program_ends(tmp_path: Path) -> None:
    # An exit without any flush: what was held back would be lost.
    assert run(tmp_path, "import os; print('out'); os._exit(0)") == "out\n"


def test_what_the_user_set_unbuffered_stays_so(tmp_path: Path) -> None:
    program = "import os; print('out', end=''); os._exit(0)"
    assert run(tmp_path, program, PYTHONUNBUFFERED="1") == "out"


def test_a_sitecustomize_of_the_environment_still_runs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.own = __name__, __file__")
    said = run(tmp_path, "import sys; print(*sys.own)", own)
    assert said.split() == ["sitecustomize", str(own / "sitecustomize.py")]


def test_without_another_one_nothing_is_missed(tmp_path: Path) -> None:
    assert run(tmp_path, "print(1)", tmp_path / "nothing") == "1\n"
