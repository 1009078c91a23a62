"""Code of a laptop reaches the nodes of a running job through a whole portal."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_jobs import JOBS, newest
from tests.portal_process import PortalProcess
from tests.waiting import eventually

pytestmark = [pytest.mark.feature("S1.4"), pytest.mark.monarch, pytest.mark.timeout(300)]
NODES = 2
SPEC = f"""
name: synced
num_nodes: {NODES}
workdir: code
resources: {{infra: local}}
portal:
  meshes: {{trainers: {NODES}}}
  gateway: true
  idle: {{minutes: 10}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "steps.py").write_text("VALUE = 'first'\n")
    (folder / "old.py").write_text("")
    (tmp_path / "job.yaml").write_text(SPEC)
    return folder


def synced(portal: PortalProcess, *arguments: str) -> dict[str, object]:
    done = portal.mportal("sync", *arguments, "-o", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def codes(portal: PortalProcess, attempt: int, file: str) -> list[str]:
    """Return the text of a file in the work directories of the nodes of an attempt."""
    job = newest(portal, "synced")["id"]
    folders = (portal.home.path / "local").glob(f"mp*-{job}-{attempt}/rank-*/workdir")
    return [(each / file).read_text() for each in sorted(folders)]


def attempt_of(portal: PortalProcess, number: int) -> dict[str, Any]:
    job = newest(portal, "synced")["id"]
    with portal.client() as client:
        attempts = client.get(f"{JOBS}/{job}/attempts").json()["results"]
    return next((each for each in attempts if each["number"] == number), {})


@pytest.mark.feature("S1.4")
def test_code_reaches_all_nodes_and_the_attempt_that_recovers(
    portal: PortalProcess, project: Path
) -> None:
    submitted = portal.mportal("submit", str(project.parent / "job.yaml"))
    assert submitted.returncode == 0, submitted.stderr
    assert eventually(lambda: newest(portal, "synced")["status"] == "RUNNING", timeout_s=60)
    archives = set(portal.home.path.rglob("*.tar.gz"))
    (project / "lib" / "steps.py").write_text("VALUE = 'second'\n")
    (project / "old.py").unlink()
    result = synced(portal, "synced", str(project))
    assert (result["files"], result["ranks"], result["late"]) == (1, NODES, {})
    assert codes(portal, 1, "lib/steps.py") == ["VALUE = 'second'\n"] * NODES
    assert eventually(lambda: set(portal.home.path.rglob("*.tar.gz")) - archives)
    os.kill(attempt_of(portal, 1)["workers"][0]["pid"], signal.SIGKILL)
    assert eventually(
        lambda: attempt_of(portal, 2) and newest(portal, "synced")["status"] == "RUNNING",
        timeout_s=90,
    )
    assert codes(portal, 2, "lib/steps.py") == ["VALUE = 'second'\n"] * NODES
