"""A program attached to workers: what it can end, and how it learns of a loss."""

from __future__ import annotations

from pathlib import Path

from tests.monarch_workers import PORT, MonarchWorkers
from tests.programs import RunProgram

ATTACH = """
meshes.join(sys.argv[1], Path(sys.argv[2]))
mesh = meshes.meshes_of({"hosts": sys.argv[3:]})["hosts"]
"""


def arguments(workers: MonarchWorkers) -> list[str]:
    gateway = f"tls://{workers.hosts[0]}:{PORT}"
    return [gateway, str(workers.certificates), *workers.addresses]


def test_no_call_of_a_shared_mesh_ends_its_workers(
    workers: MonarchWorkers, run_program: RunProgram
) -> None:
    program = (
        ATTACH
        + """
shared = meshes.SharedHostMesh.of(mesh, "job ppo")
say(ranks(shared), ranks(shared.slice(hosts=1)))
python = shared.with_python_executable(sys.executable)
for each in (shared, python, shared.slice(hosts=slice(0, 2))):
    try:
        each.shutdown()
    except SharedWorkersError as error:
        say("job ppo" in str(error), "stop()" in str(error))

async def block():
    async with shared:
        pass
asyncio.run(block())
try:
    shared.slice(hosts=0).shutdown().get(timeout=30)
except Exception as error:
    say("refused", type(error).__name__)
meshes.stop({"hosts": shared})
"""
    )
    before = workers.pids
    said = run_program(program, *arguments(workers))
    assert said[0] == "['0', '1'] ['1']"
    assert said[1:4] == ["True True"] * 3
    assert said[4].startswith("refused")
    assert workers.pids == before
    assert run_program(ATTACH + "say(ranks(mesh))", *arguments(workers)) == ["['0', '1']"]


def test_a_mesh_whose_workers_this_program_has_requested_can_be_shut_down(
    workers: MonarchWorkers, run_program: RunProgram
) -> None:
    program = (
        ATTACH
        + """
shared = meshes.SharedHostMesh.of(mesh, "job ppo")
shared.end_workers = lambda: say("the job ends")
say(ranks(shared))
try:
    shared.slice(hosts=0).shutdown()
except SharedWorkersError as error:
    say("refused")
async def end():
    await shared.shutdown()
if ENDS_ASIDE:
    asyncio.run(end())
else:
    shared.shutdown().get(timeout=30)
"""
    )
    for aside in ("True", "False"):
        said = run_program(f"ENDS_ASIDE = {aside}" + program, *arguments(workers))
        assert said == ["['0', '1']", "refused", "the job ends"]


def test_a_loss_interrupts_every_way_of_waiting_for_monarch(
    workers: MonarchWorkers, run_program: RunProgram
) -> None:
    program = (
        ATTACH
        + """
alarm = LossAlarm()
actors = spawn(mesh)
actors.initialized.get(timeout=60)
async def waits():
    await actors.forever.call()
ways = [
    lambda: actors.forever.call().get(),
    lambda: actors.forever.call().get(timeout=60),
    lambda: asyncio.run(waits()),
    lambda: spawn(mesh).forever.call().result(),
]
threading.Timer(0.5, alarm.report, [SessionLostError("away too long", away_s=301)]).start()
for way in ways:
    begin = time.monotonic()
    try:
        way()
    except SessionLostError as error:
        say(error, error.away_s, time.monotonic() - begin < 20)
alarm.close()
say(ranks(mesh))
"""
    )
    said = run_program(program, *arguments(workers))
    assert said == ["away too long 301 True"] * 4 + ["['0', '1']"]


def test_a_second_use_of_monarch_is_refused_with_what_to_do(
    workers: MonarchWorkers, run_program: RunProgram
) -> None:
    program = (
        ATTACH
        + """
try:
    meshes.join(f"tls://127.0.0.1:1", Path(sys.argv[2]))
except MonarchInUseError as error:
    say("a process for each job" in str(error))
"""
    )
    assert run_program(program, *arguments(workers)) == ["True"]


WATCH = """
from monarch_client.runner.mesh.admin import MeshAdmin
from monarch_client.runner.mesh.walk import Walk
from monarch_client.runner.scripts import serve_mesh_admin
plan = {"meshes": {"hosts": [{"address": sys.argv[1]}]}, "attach_timeout_s": 60}
url, held = serve_mesh_admin._start({**plan, "transport": "tcp://127.0.0.1:0"})
tree = Walk(lambda address: 0, lambda rank, name: True).look([MeshAdmin(url, None)])
say([proc["id"] for host in tree["hosts"] for proc in host["procs"]])
os._exit(0)
"""
PROCS = """
meshes.join(sys.argv[1])
mesh = meshes.meshes_of({"hosts": sys.argv[1:]})["hosts"]
shared = meshes.SharedHostMesh.of(mesh, "job ppo")
say(ranks(shared), ranks(shared))
"""


def test_procs_of_a_program_that_leaves_are_no_deaths_to_the_mesh_admin(
    tmp_path: Path, run_program: RunProgram
) -> None:
    workers = MonarchWorkers(tmp_path, 1, tls=False)
    aside = """
async def stop():
    await shared.stop()
asyncio.run(stop())
"""
    try:
        for leaving in ('meshes.stop({"hosts": shared})', "shared.stop().get(timeout=60)", aside):
            assert run_program(PROCS + leaving, *workers.addresses) == ["['0'] ['0']"]
        assert run_program(WATCH, *workers.addresses) == ["[]"]
    finally:
        workers.close()
