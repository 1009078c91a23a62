"""Programs on laptops change the code of actors: here the kernel of a notebook."""

from __future__ import annotations

import os
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
ACTOR = """
from monarch.actor import Actor, endpoint
from lib.steps import VALUE

class Trainer(Actor):
    @endpoint
    def value(self):
        return VALUE
"""
CELLS = [
    """
import sys
sys.path.insert(0, {folder!r})
from pathlib import Path
from monarch_client.gateway import connect

steps = Path({folder!r}) / "lib" / "steps.py"
connection = connect("reloaded", sync={folder!r})
procs = connection.meshes.trainers.spawn_procs(per_host={{"procs": 1}})

def values(trainers):
    return sorted(set(value for _, value in trainers.value.call().get(timeout=60).items()))
""",
    """
from trainer import Trainer
print("first:", values(procs.spawn("first", Trainer)))
""",
    """
steps.write_text("VALUE = 'second'")
print("changed:", connection.sync(reload="modules").changed)
from trainer import Trainer
print("second:", values(procs.spawn("second", Trainer)))
""",
    """
@connection.after_sync
def spawn(meshes):
    global trainers
    from trainer import Trainer
    trainers = meshes.trainers.spawn_procs(per_host={{"procs": 1}}).spawn("third", Trainer)

steps.write_text("VALUE = 'third'")
print("ranks:", connection.sync(reload="procs").ranks)
print("third:", values(trainers))
connection.close()
""",
]
SAID = ["first: ['one']", "changed: ('lib/steps.py',)", "second: ['second']", "third: ['third']"]
SPEC = """
name: reloaded
num_nodes: 1
workdir: code
resources: {infra: local}
portal:
  meshes: {trainers: 1}
  gateway: true
  idle: {minutes: 10}
"""


@pytest.fixture(scope="module")
def job(portal: PortalProcess, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("job")
    code_in(folder / "code")
    (folder / "job.yaml").write_text(SPEC)
    submitted = portal.mportal("submit", str(folder / "job.yaml"))
    assert submitted.returncode == 0, submitted.stderr
    assert eventually(lambda: newest(portal, "reloaded")["status"] == "RUNNING", timeout_s=60)


def code_in(folder: Path) -> Path:
    (folder / "lib").mkdir(parents=True)
    (folder / "trainer.py").write_text(ACTOR)
    (folder / "lib" / "steps.py").write_text("VALUE = 'one'")
    return folder


@pytest.fixture
def kernel(
    portal: PortalProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BlockingKernelClient]:
    """Yield a client of a kernel of Jupyter's, started as a notebook starts it."""
    manager = KernelManager(kernel_name="python3")
    manager.kernel_cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    account = {"MPORTAL_URL": portal.url, "MPORTAL_TOKEN": portal.token}
    path = {"PYTHONPATH": str(CHECKOUT), "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    manager.start_kernel(env={**os.environ, **account, **path}, cwd=str(tmp_path))
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


@pytest.mark.usefixtures("job")
def test_a_notebook_drives_a_mesh_changes_code_and_calls_it_again(
    kernel: BlockingKernelClient, tmp_path: Path
) -> None:
    folder = str(code_in(tmp_path / "code"))
    said = "".join(run_cell(kernel, cell.format(folder=folder)) for cell in CELLS)
    for line in SAID:
        assert line in said, said
