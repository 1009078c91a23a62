"""Monarch's own classes on a laptop, over a session that is cut in every way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.gateway_programs.conftest import StartProgram
from tests.integration.gateway_programs.programs import OPENED
from tests.integration.gateway_programs.stand_in import StandIn
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S1.1")


def test_a_program_drives_all_meshes_and_leaves_quietly(start: StartProgram) -> None:
    program = start(
        OPENED
        + """
with connection as meshes:
    say(sorted(meshes))
    counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
    say(sorted(value for _, value in counters.rank.call().get(timeout=30).items()))
    left = meshes["left-over"].spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
    say(left.rank.call_one().get(timeout=30))
    say({value for _, value in counters.length.call(bytes(30_000_000)).get(timeout=60).items()})
    try:
        meshes.trainers.shutdown()
    except SharedWorkersError as error:
        say(error)
say("over")
"""
    )
    assert program.wait() == 0, program.output
    assert program.said[:4] == ["open", "['left-over', 'trainers']", "['0', '1']", "1"]
    assert program.said[4] == "{30000000}"
    assert "stop()" in program.said[5]
    assert "Traceback" not in program.output


def test_calls_are_answered_once_and_in_order_after_cuts_idle_and_during_a_call(
    gateway: StandIn, start: StartProgram
) -> None:
    program = start(
        OPENED
        + """
counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
for number in range(100):
    counters.add.broadcast(number)
say(len(counters.add.call(100).get(timeout=60)))
wait_for_word()  # idle, cut for a second
say(len(counters.add.call(101).get(timeout=60)))
slow = counters.add.call(102, 2.5)
say("calling")
say(len(slow.get(timeout=60)))
data = bytes(50_000_000)
large = counters.length.call(data)
say("sending")
say({value for _, value in large.get(timeout=90).items()})
say(all(seen == list(range(103)) for _, seen in counters.all.call().get(timeout=60).items()))
connection.close()
"""
    )
    program.wait_for("said: waits")
    gateway.cut()
    program.wait_for("not reached")
    gateway.restore()
    program.go_on()
    program.wait_for("said: calling")
    gateway.cut_for(1)
    program.wait_for("said: sending")
    gateway.cut_for(1)
    assert program.wait() == 0, program.output
    assert program.said[-4:] == ["2", "sending", "{50000000}", "True"]
    assert program.output.count("is reached again") == 3
    assert "Traceback" not in program.output


def test_a_killed_link_process_is_started_again_and_calls_go_on(start: StartProgram) -> None:
    program = start(
        OPENED
        + """
counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
say(len(counters.add.call(1).get(timeout=60)))
for number in (2, 3):
    pending = counters.add.call(number, 1.0)
    os.kill(connection.link_pid, signal.SIGKILL)
    say(len(pending.get(timeout=60)))
say(counters.all.call().get(timeout=60).item(hosts=1, procs=0))
connection.close()
"""
    )
    assert program.wait() == 0, program.output
    assert program.said[1:] == ["2", "2", "2", "[1, 2, 3]"]
    assert "Traceback" not in program.output


def test_a_session_that_is_away_for_too_long_raises_where_the_program_waits(
    gateway: StandIn, start: StartProgram
) -> None:
    program = start(
        OPENED
        + """
counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
say(len(counters.add.call(1).get(timeout=60)))
pending = counters.add.call(2, 1.0)
wait_for_word()
try:
    pending.get(timeout=60)
except SessionLostError as error:
    say(error, error.away_s >= 2)
connection.close()
say("over")
""",
        away_limit_s=2.0,
    )
    program.wait_for("said: waits")
    gateway.cut()
    program.go_on()
    assert program.wait() == 0, program.output
    assert "start the program again" in program.said[-2] and program.said[-2].endswith("True")
    assert program.said[-1] == "over"
    assert "Traceback" not in program.output


def test_a_session_that_the_portal_ends_raises_with_its_reason(
    gateway: StandIn, start: StartProgram
) -> None:
    program = start(
        OPENED
        + """
import asyncio
async def main():
    wait_for_word()
    await counters.add.call(2, 60.0)

counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
try:
    asyncio.run(main())
except SessionLostError as error:
    say(error)
"""
    )
    program.wait_for("said: waits")
    program.go_on()
    gateway.send(op="close", detail="Ended by mia.")
    assert program.wait() == 0, program.output
    assert "Ended by mia" in program.said[-1]
    assert "Traceback" not in program.output


def test_lost_hosts_are_named_where_the_program_waits(
    gateway: StandIn, start: StartProgram
) -> None:
    program = start(
        OPENED
        + """
counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
pending = counters.add.call(2, 60.0)
wait_for_word()
try:
    pending.get(timeout=60)
except HostLostError as error:
    say(error.hosts, error)
"""
    )
    program.wait_for("said: waits")
    program.go_on()
    gateway.send(op="lost_hosts", ranks=[1])
    assert program.wait() == 0, program.output
    assert program.said[-1].startswith("['node-1'] job 7 lost node-1.")


def test_errors_of_actors_and_of_processes_arrive(start: StartProgram) -> None:
    program = start(
        OPENED
        + """
from monarch.actor import ActorError
counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
try:
    counters.fail.call().get(timeout=30)
except ActorError as error:
    say("of the actor" in str(error))
monarch_faults = []
import monarch.actor
monarch.actor.unhandled_fault_hook = lambda failure: monarch_faults.append(failure)
begin = time.monotonic()
try:
    counters.slice(hosts=1).die.call().get(timeout=60)
except Exception as error:
    say(type(error).__name__, time.monotonic() - begin < 30)
connection.close()
"""
    )
    assert program.wait() == 0, program.output
    assert program.said[1] == "True"
    assert program.said[2].endswith(" True")


def test_a_certificate_is_renewed_before_it_ends(gateway: StandIn, start: StartProgram) -> None:
    gateway.leaf_s = 10.5
    program = start(
        OPENED
        + """
counters = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("counter", Counter)
say(len(counters.add.call(1).get(timeout=60)))
wait_for_word()
say(len(counters.add.call(2).get(timeout=60)))
connection.close()
"""
    )
    program.wait_for("said: waits")
    signed = lambda: [each for each in gateway.requests if each["op"] == "sign"]  # noqa: E731
    assert eventually(lambda: len(signed()) >= 3, timeout_s=30)
    assert len({each["csr"] for each in signed()}) == 1
    gateway.cut_for(0.5)
    program.wait_for("reached again")
    program.go_on()
    assert program.wait() == 0, program.output
    assert program.said[-1] == "2"


CLAIMED = """
import contextlib
from monarch_client.gateway import connect, opening
opening.opened_session = lambda job, project: contextlib.nullcontext(OPENING)
"""


def test_a_second_connect_is_refused_at_once_and_a_refused_one_may_be_repeated(
    gateway: StandIn, start: StartProgram
) -> None:
    gateway.hello["torchmonarch"] = "0.6.0"
    program = start(
        CLAIMED
        + """
try:
    connect("ppo")
except VersionMismatchError as error:
    say(error)
wait_for_word()
connection = connect("ppo")
try:
    connect("other")
except OneJobError as error:
    say(error)
connection.close()
try:
    connect("ppo")
except OneJobError as error:
    say("still refused")
"""
    )
    program.wait_for("said: waits")
    # Nothing of Monarch's was sent to workers that would misunderstand it.
    assert [each for each in gateway.requests if each["op"] == "link"] == []
    gateway.hello["torchmonarch"] = "0.7.0"
    gateway.renew_ticket()
    program.go_on()
    assert program.wait() == 0, program.output
    assert program.said[0].endswith("Run: pip install torchmonarch==0.6.0")
    assert program.said[2].startswith("This process is connected to job 7")
    assert program.said[3] == "still refused"


def test_a_session_without_a_worker_behind_it_is_refused_with_the_reason(
    gateway: StandIn, start: StartProgram
) -> None:
    gateway.head = ("127.0.0.1", 9)
    program = start("""
try:
    Connection(OPENING, **OPTIONS)
except SessionRefusedError as error:
    say(error)
try:
    Connection(OPENING, **OPTIONS)
except SessionRefusedError as error:
    say(error)
""")
    assert program.wait() == 0, program.output
    assert "the worker of node 0 does not answer (connection refused)" in program.said[0]
    # A ticket is valid once.
    assert program.said[1].startswith("The session was refused: ")


def test_a_killed_program_leaves_no_session_and_no_key(
    gateway: StandIn, start: StartProgram
) -> None:
    program = start(OPENED + "say(connection._folder.path)\nwait_for_word()\n")
    program.wait_for("said: waits")
    folder = Path(program.said[1])
    assert (folder / "leaf.key").exists()
    program.process.kill()
    assert eventually(lambda: {"op": "close"} in gateway.requests)
    assert eventually(lambda: not folder.exists())
