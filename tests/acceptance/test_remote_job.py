"""RemoteJob on machines that the portal provides: the program of another product's README."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_jobs import newest
from tests.own_network import OwnNetwork
from tests.portal_process import PortalProcess
from tests.programs import RunProgram, runner_in
from tests.waiting import eventually

pytestmark = [pytest.mark.monarch, pytest.mark.timeout(400), pytest.mark.feature("S1.7")]
# Of a README that was written for another product: the first two lines are changed.
# Machines have no GPU here, so the request for one is left out, and `torch` is not used.
PROGRAM = """
import monarch_client.gateway as kt
from monarch_client.gateway import RemoteJob as KubernetesJob
from monarch.actor import Actor, current_rank, endpoint

class Trainer(Actor):
    @endpoint
    def train_step(self, batch_size: int) -> str:
        return f"Training step on cpu with batch_size={batch_size}"

    @endpoint
    def get_rank(self) -> int:
        return current_rank().rank

job = KubernetesJob(
    compute=kt.Compute(
        replicas=2,
        image=kt.Image(name="monarch-worker").pip_install(["torchmonarch"]),
    )
)

state = job.state()
host_mesh = state.workers
proc_mesh = host_mesh.spawn_procs(per_host={"gpus": 1})
trainers = proc_mesh.spawn("trainers", Trainer)
results = trainers.train_step.call(batch_size=32).get()
print("said:", [value for _, value in results.items()])
ranks = trainers.get_rank.call().get()
print("said:", [value for _, value in ranks.items()])
print("said:", job.name)
job.kill()
"""
FAILING = """
from monarch_client.gateway import Compute, Image, RemoteJob
from monarch_client.gateway.remote.sources import JobEndedError

image = Image().run_bash("echo no such wheel; exit 3")
try:
    RemoteJob(compute=Compute(image=image)).state()
except JobEndedError as error:
    print("said:", "mportal logs" in str(error))
"""


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalProcess]:
    portal = PortalProcess()
    try:
        portal.start()
        yield portal
    finally:
        portal.close()


@pytest.fixture
def run_program(tmp_path: Path, portal: PortalProcess) -> Iterator[RunProgram]:
    """Run a program as the portal's first user, where nothing but the portal's port is reached."""
    network = OwnNetwork(int(portal.url.rpartition(":")[2]))
    run = runner_in(tmp_path, network.prefix)

    def run_as_user(text: str, *arguments: object, **variables: str) -> list[str]:
        account = {"MPORTAL_URL": portal.url, "MPORTAL_TOKEN": portal.token}
        return run(text, *arguments, **account, **variables)

    yield run_as_user
    network.close()


@pytest.mark.parametrize("end", ["job.kill()", "host_mesh.shutdown().get()"])
def test_a_program_gets_machines_drives_them_and_gives_them_back(
    portal: PortalProcess, run_program: RunProgram, end: str
) -> None:
    # The workers' own addresses are those of another loopback.
    steps, ranks, name = run_program(PROGRAM.replace("job.kill()", end))
    assert steps == str(["Training step on cpu with batch_size=32"] * 2)
    assert ranks == "[0, 1]"
    assert eventually(lambda: newest(portal, name)["status"] == "CANCELLED", timeout_s=60)


def test_a_job_that_ends_too_early_is_named_with_its_log(run_program: RunProgram) -> None:
    assert run_program(FAILING) == ["True"]


SYNCED = """
import sys
from pathlib import Path
from monarch_client.gateway import Compute, RemoteJob

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
with RemoteJob(compute=Compute(replicas=2), sync_dirs=[str(folder)]) as job:
    workers = job.state().workers

    @job.after_sync
    def spawn(_meshes):
        global trainers
        from trainer import Trainer
        trainers = workers.spawn_procs(per_host={"procs": 1}).spawn("trainers", Trainer)

    print("said:", [value for _, value in trainers.value.call().get(timeout=60).items()])
    text = (folder / "trainer.py").read_text()
    (folder / "trainer.py").write_text(text.replace("first", "second"))
    result = job.sync(reload="procs")
    print("said:", result.ranks, result.changed)
    print("said:", [value for _, value in trainers.value.call().get(timeout=60).items()])
"""
TRAINER = """
from monarch.actor import Actor, endpoint

class Trainer(Actor):
    @endpoint
    def value(self):
        return "first"
"""


def test_the_code_of_a_folder_reaches_all_machines_and_again_when_it_changes(
    run_program: RunProgram, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "trainer.py").write_text(TRAINER)
    first, result, second = run_program(SYNCED, tmp_path / "code")
    assert first == str(["first"] * 2)
    assert result == "2 ('trainer.py',)"
    assert second == str(["second"] * 2)
