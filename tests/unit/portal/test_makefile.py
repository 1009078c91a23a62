"""The Makefile's targets and the scripts behind them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROMISED = {
    "setup",
    "run",
    "stop",
    "demo",
    "test",
    "lint",
    "types",
    "features",
    "bench",
    "reset",
    "docs",
    "browsers",
}


def test_make_alone_lists_the_targets():
    done = subprocess.run(
        ["make"], cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ
    )
    listed = set(re.findall(r"^  make (\w+)", done.stdout, re.MULTILINE))
    assert listed >= PROMISED


@pytest.mark.parametrize(
    "script",
    [
        "deploy/make-environment",
        "deploy/make-docs",
        "deploy/demo",
        "deploy/install-browser",
        ".ci/run",
    ],
)
def test_a_script_can_be_run_and_has_no_syntax_error(script):
    path = ROOT / script
    assert os.access(path, os.X_OK)
    shell = "bash" if "bash" in path.read_text().split("\n", 1)[0] else "sh"
    subprocess.run([shell, "-n", str(path)], check=True)


def test_the_lock_names_a_hash_for_each_package_and_no_address():
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    packages = re.split(r"\n(?=[\w.-]+==)", lock.strip())
    assert all("--hash=sha256:" in package for package in packages)
