"""Refusals of the process with the mesh admin before it imports Monarch."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from monarch_client.runner.scripts import serve_mesh_admin

SCRIPT = Path(serve_mesh_admin.__file__)


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def test_with_too_few_files_for_its_hosts_it_does_not_begin(tmp_path: Path) -> None:
    plan = tmp_path / "meshes.json"
    workers = [{"address": f"tcp://node{rank}:1"} for rank in range(100)]
    plan.write_text(json.dumps({"meshes": {"trainers": workers}, "attach_timeout_s": 1}))
    files = [str(plan), str(tmp_path / "admins.json"), str(tmp_path / "watch")]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *files],
        preexec_fn=few_files,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "it may open 256 files and needs 500 for 100 hosts" in done.stderr
    assert not (tmp_path / "admins.json").exists()
