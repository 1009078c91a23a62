"""Any end of a program, at any point of its run, leaves no machine."""

from __future__ import annotations

import signal

import pytest

from tests.integration.skypilot_job.conftest import RunClient, nothing_remains, remains
from tests.sky_stub.process import StubProcess
from tests.waiting import eventually

# Some minutes of programs that are killed: `make sky-faults`.
pytestmark = [pytest.mark.faults, pytest.mark.feature("S2.2")]
CAUGHT = {signal.SIGINT: {-2, 130}, signal.SIGTERM: {143}, signal.SIGHUP: {129}}
JOB = """
job = SkyPilotJob({"hosts": 2}, cluster_name="brief", **options)
"""
# Its head has to notice by itself that the program ended. All nodes share one loopback here: what
# connects one to another, or other tests' programs to that port, would look like a program's.
LONE_JOB = """
job = SkyPilotJob({"hosts": 1}, cluster_name="brief", monarch_port=24322)
"""
ALIVE = """
say(ranks(job.state().hosts))
say("alive")
"""


@pytest.mark.parametrize("number", [*CAUGHT, signal.SIGKILL])
def test_a_signal_while_machines_come_up_leaves_none(
    stub: StubProcess, run: RunClient, number: signal.Signals
) -> None:
    stub.plan(provision_s=4)
    client = run("options = {}" + JOB + "job.state()")
    client.wait_for("asking SkyPilot")
    wait_for_event(stub, "launch_begun")
    ended_well(client.strike(number), number)
    if number != signal.SIGKILL:
        assert remains(stub) == []
    assert nothing_remains(stub)


@pytest.mark.parametrize("number", [*CAUGHT, signal.SIGKILL])
def test_a_signal_during_setup_leaves_no_machine(
    stub: StubProcess, run: RunClient, number: signal.Signals
) -> None:
    client = run("options = {'setup_commands': 'sleep 4'}" + JOB + "job.state()")
    client.wait_for(": setup")
    ended_well(client.strike(number), number)
    if number != signal.SIGKILL:
        assert remains(stub) == []
    assert nothing_remains(stub)


@pytest.mark.parametrize("number", [*CAUGHT, signal.SIGKILL])
def test_a_signal_to_a_program_that_works_leaves_no_machine(
    stub: StubProcess, run: RunClient, number: signal.Signals
) -> None:
    job = JOB if number != signal.SIGKILL else LONE_JOB
    client = run("options = {}" + job + ALIVE + "threading.Event().wait()")
    client.wait_for("said: alive")
    ended_well(client.strike(number), number)
    if number != signal.SIGKILL:
        assert remains(stub) == []
    assert nothing_remains(stub)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(3)", 3),
        ("raise ValueError('mine')", 1),
        ("job.kill(); job.kill()", 0),
        ("pass", 0),
    ],
)
@pytest.mark.parametrize("block", ["", "with job: "])
def test_every_other_end_of_a_program_leaves_no_machine(
    stub: StubProcess, run: RunClient, end: str, code: int, block: str
) -> None:
    client = run("options = {}" + JOB + ALIVE + f"{block}{end}")
    assert client.wait() == code, client.text
    assert "alive" in client.said
    assert remains(stub) == []


def test_a_block_ends_its_cluster_also_where_it_would_be_kept(
    stub: StubProcess, run: RunClient
) -> None:
    block = "with job:" + ALIVE.replace("\n", "\n    ")
    client = run("options = {'idle_minutes_to_autostop': 600}" + JOB + block)
    assert client.wait() == 0, client.text
    assert remains(stub) == []


def test_a_warm_cluster_is_terminated_all_the_same_when_its_workers_do_not_start(
    stub: StubProcess, run: RunClient
) -> None:
    options = "options = {'idle_minutes_to_autostop': 600, 'setup_commands': 'exit 1'}"
    client = run(options + JOB + "job.state()")
    assert client.wait() == 1, client.text
    assert "WorkersError" in client.text
    assert remains(stub) == []


def test_an_unreachable_server_at_the_end_is_reported(stub: StubProcess, run: RunClient) -> None:
    client = run("options = {}" + JOB + ALIVE + "threading.Event().wait()")
    client.wait_for("said: alive")
    stub.kill()
    client.strike(signal.SIGTERM)
    assert "Cluster brief may still be there" in client.text
    assert "sky down brief" in client.text


def test_a_fork_of_the_program_ends_nothing(stub: StubProcess, run: RunClient) -> None:
    client = run(
        "options = {}"
        + JOB
        + ALIVE
        + """
from monarch_client.runner.base import process_end
child = os.fork()
if not child:
    # Nothing else is safe in a fork of a program with Monarch's threads.
    process_end._end_all()
    os._exit(0)
os.waitpid(child, 0)
say(ranks(job.state().hosts))
"""
    )
    assert client.wait() == 0, client.text
    assert client.said == ["['0', '1']", "alive", "['0', '1']"]
    assert remains(stub) == []


def ended_well(code: int, number: signal.Signals) -> None:
    assert code in CAUGHT.get(number, {-9})


def wait_for_event(stub: StubProcess, name: str) -> None:
    assert eventually(lambda: stub.witness.events(name))


def test_a_worker_that_dies_ends_the_wait_for_it(stub: StubProcess, run: RunClient) -> None:
    client = run("""
from monarch_client.attaching import watch
from monarch_client.attaching.errors import HostLostError
watch.ENDED_S, watch.PROBE_EVERY_S = 1.0, 0.2

class Sleeper(Actor):
    @endpoint
    def sleep(self):
        time.sleep(1000)

    @endpoint
    def parent(self):
        return os.getppid()

with SkyPilotJob({"hosts": 2}) as job:
    procs = job.state().hosts.spawn_procs(per_host={"procs": 1})
    actors = procs.spawn("sleeper", Sleeper)
    parents = [pid for _, pid in actors.parent.call().get(timeout=30).items()]
    os.kill(parents[1], signal.SIGKILL)
    try:
        actors.sleep.call().get()
    except HostLostError as error:
        say("sky logs" in str(error))
""")
    assert client.wait() == 0, client.text
    assert client.said == ["True"]
    assert remains(stub) == []
