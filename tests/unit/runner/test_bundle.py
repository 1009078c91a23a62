from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from monarch_client.runner.bundle import build


def pythons() -> set[str]:
    """Return this interpreter, and the oldest supported one if it is installed."""
    oldest = shutil.which("python3.8") or sys.executable
    # What is found may be a version manager's stand-in.
    works = subprocess.run([oldest, "-c", ""], capture_output=True, check=False).returncode == 0
    return {sys.executable, oldest if works else sys.executable}


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = build(tmp_path / "a" / "runner.pyz").read_bytes()
    assert build(tmp_path / "b.pyz").read_bytes() == first
    assert build(tmp_path / "a" / "runner.pyz").read_bytes() == first
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["runner.pyz"]


def test_the_bundle_holds_the_runner_and_nothing_else_of_the_client(tmp_path: Path) -> None:
    names = zipfile.ZipFile(build(tmp_path / "runner.pyz")).namelist()
    assert "monarch_client/runner/scripts/mportal_runtime/__init__.py" in names
    assert "monarch_client/runner/scripts/worker.py" in names
    assert all(
        name.startswith("monarch_client/runner/")
        or name in {"__main__.py", "monarch_client/__init__.py", "monarch_client/crash_points.py"}
        for name in names
    )


@pytest.mark.parametrize("python", sorted(pythons()))
def test_the_bundle_starts_without_any_package(tmp_path: Path, python: str) -> None:
    bundle = build(tmp_path / "runner.pyz")
    result = subprocess.run(
        [python, "-I", "-S", bundle, "--config", tmp_path / "none", "--rank", "0", "--root", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("runner: cannot read")
