"""Programs on laptops change the code of actors: here the kernel of a notebook."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.acceptance.test_jobs import newest
from tests.portal_process import CHECKOUT, PortalProcess
from tests.waiting import eventually

pytestmark = [pytest.mark.monarch, pytest.mark.timeout(400)]
EXAMPLE = CHECKOUT / "examples" / "change_code"
SAID = [
    "first: [0.1, 0.1]", "changed: ('steps.py',)", "modules: [0.2, 0.2]", "procs: [0.3, 0.3]",
]  # fmt: skip
SPEC = """
name: change-code
num_nodes: 2
workdir: code
resources: {infra: local}
portal:
  meshes: {trainers: 2}
  gateway: true
  idle: {minutes: 10}
"""


@pytest.fixture
def folder(portal: PortalProcess, tmp_path: Path) -> Path:
    """Return a copy of the example, with which a job runs."""
    folder = tmp_path / "code"
    shutil.copytree(EXAMPLE, folder)
    (tmp_path / "job.yaml").write_text(SPEC)
    submitted = portal.mportal("submit", str(tmp_path / "job.yaml"))
    assert submitted.returncode == 0, submitted.stderr
    assert eventually(lambda: newest(portal, "change-code")["status"] == "RUNNING", timeout_s=60)
    return folder


@pytest.fixture
def kernel(portal: PortalProcess, folder: Path, tmp_path: Path) -> Iterator[BlockingKernelClient]:
    """Yield a client of a kernel of Jupyter's, started as a notebook starts it."""
    manager = KernelManager(kernel_name="python3")
    manager.kernel_cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    account = {
        "MPORTAL_URL": portal.url,
        "MPORTAL_TOKEN": portal.token,
        "MPORTAL_PROJECT": "default",
    }
    path = {"PYTHONPATH": str(CHECKOUT), "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    manager.start_kernel(env={**os.environ, **account, **path}, cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run_cell(kernel: BlockingKernelClient, text: str) -> str:
    """Run a cell, and return what it prints."""
    request = kernel.execute(text)
    said: list[str] = []
    while True:
        try:
            message = kernel.get_iopub_msg(timeout=120)
        except Empty:
            raise AssertionError(f"no end; so far: {said}") from None
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "stream":
            said.append(message["content"]["text"])
        if message["msg_type"] == "error":
            raise AssertionError("\n".join(message["content"]["traceback"]))
        if message["content"].get("execution_state") == "idle":
            return "".join(said)


@pytest.mark.feature("S1.4")
def test_a_notebook_drives_a_mesh_changes_code_and_calls_it_again(
    kernel: BlockingKernelClient,
) -> None:
    notebook = json.loads((EXAMPLE / "change_code.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    said = "".join(run_cell(kernel, cell) for cell in cells)
    for line in SAID:
        assert line in said, said
