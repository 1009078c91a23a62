"""Objects on the hosts of a mesh: each stays on its host until another one needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.context.test_mesh import PRELUDE
from tests.monarch_workers import MonarchWorkers
from tests.programs import CHECKOUT, RunProgram, runner_in

pytestmark = [pytest.mark.slow, pytest.mark.monarch]

OBJECTS = """
import asyncio
import numpy as np
driver = context._driver
fetcher = driver.stored.own.fetcher
reads, ways = [], set()
if fetcher._reads:
    read = fetcher._reads._memory.read
    def counted(handle, target):
        read(handle, target)
        reads.append(handle)
    fetcher._reads._memory.read = counted
def relayed(*arguments, relay=fetcher._relay):
    ways.add("relay")
    return relay(*arguments)
fetcher._relay = relayed
names = sorted(host.description.name for host in driver.hosts._hosts.hosts)
licenses = ActorOptions(resources={"CPU": 0.01})

class Worker:
    def host(self):
        return os.getppid()
    def make(self, n):
        return np.full(10_000_000, n, np.uint8)
    def total(self, array):
        assert not array.flags.writeable
        return int(array[::1000].sum()), os.getppid()
    def put(self, n):
        own = get_job_context()
        return own.put(np.full(3_000_000, n, np.uint8))
    def read(self, refs):
        return int(get_job_context().get(refs[0])[-1])

def places():
    return {place.host for place in driver.stored._places.values()}

# One actor on each host.
made = [context.create_actor(Worker, options=licenses) for _ in range(8)]
by_host = dict(zip(context.get([each.host() for each in made], timeout=60), made))
first, second = by_host.values()
array = first.make(7)
context.wait([array], timeout=60)
say(len(places()), places() <= set(names), driver.stored.store.usage().objects)
# Processes of the other host read one copy; the driver gets a copy of its own.
totals = context.get([each.total(array) for each in made] * 2, timeout=60)
say({total for total, _ in totals} == {70_000}, len({host for _, host in totals}))
value = context.get(array)
ways.add("rdma") if reads else ways.add("tcp") if fetcher._free else None
say(value.nbytes, *ways, driver.stored.store.usage().copies > 10_000_000)
# What the driver puts, and large arguments, are fetched from it.
put = context.put(np.full(5_000_000, 3, np.uint8))
say(context.get([first.total(put), second.total(np.full(4_000_000, 2, np.uint8))])[0][0])
# References inside of values, and values of nested calls.
inner = context.get(first.put(9), timeout=60)
say(context.get(second.read([inner]), timeout=60), int(context.get(inner)[0]))
# References that coroutines await, here and on a host.
async def total(*actors):
    arrays = await asyncio.gather(*[each.make(4) for each in actors])
    return sum(int(each[-1]) for each in arrays)
say(asyncio.run(total(first, second)), context.get(context.create_task(total, (first, second)), 60))
del value, put, inner, array, totals
context.put(0)
ended = time.monotonic() + 30
while driver.stored._places and time.monotonic() < ended:
    time.sleep(0.05)
driver.stored.client.flush()
say(len(driver.stored._places), driver.stored.store.usage().objects)
context.close()
"""

LOSS = """
import numpy as np
from collections import Counter

driver = context._driver
victim = driver.hosts._hosts.hosts[1].description.name
def place_of(ref):
    return driver.stored._places[driver.objects.payload(ref.id).data].host
def make(n):
    time.sleep(0.1)
    return np.full(1_000_000, n, np.uint8)
class Worker:
    def make(self):
        return make(50)
    def put(self):
        return get_job_context().put(make(60))

once = TaskOptions(max_retries=0)
# The first: one on each host.
workers = [context.create_actor(Worker, options=ActorOptions(resources={"CPU": 1})) for _ in "ab"]
arrays = [each.make() for each in workers]
put = [context.get(each.put(), timeout=60) for each in workers]
made = [context.create_task(make, (n,)) for n in range(12)]
context.wait(made, num_returns=12, timeout=60)
doubled = []
for each in made:
    doubled.append(context.create_task(np.add, (each, each)))
    context.wait(doubled, num_returns=len(doubled), timeout=60)
unique = [context.create_task(make, (n,), options=once) for n in range(12)]
refs = [*made, *doubled, *unique, *arrays, *put]
context.wait(refs, num_returns=len(refs), timeout=60)
before = {each.id: place_of(each) for each in refs}
say(all(before[a.id] == before[b.id] for a, b in zip(made, doubled)))
say(all(victim in {before[each.id] for each in group} for group in (made, unique, arrays, put)))
kept, made, each = made[6:], None, None
killed = time.monotonic()
os.killpg(int(os.environ["VICTIM"]), signal.SIGKILL)
# A task that runs now, and fetches from the host before it is known to be lost.
later = [context.create_task(np.add, (each, each)) for each in doubled]
say([int(each[0]) for each in context.get(doubled, timeout=90)] == [2 * n for n in range(12)])
say([int(each[-1]) for each in context.get(later, timeout=90)] == [4 * n for n in range(12)])
say([int(each[-1]) for each in context.get(kept, timeout=90)] == list(range(6, 12)))
say(time.monotonic() - killed < 30)
for group in (unique, arrays, put):
    texts = set()
    for ref in group:
        try:
            context.get(ref, timeout=60)
            assert before[ref.id] != victim
        except ObjectLostError as error:
            assert before[ref.id] == victim
            texts.add(str(error).replace(victim, "HOST"))
    say(texts)
del kept, doubled, later, unique, arrays, put, refs, ref, group
context.put(0)
ended = time.monotonic() + 30
while (driver.stored._places or len(driver.stored.lineage)) and time.monotonic() < ended:
    time.sleep(0.05)
say(len(driver.stored._places), len(driver.stored.lineage))
context.close()
"""

WITHOUT_CONNECTIONS = """
hosts = context._driver.hosts._hosts
for host in hosts.hosts:
    host.description.address = ""
hosts._address = ""
with context._driver.loop.lock:
    hosts._set_hosts()
"""


STOPPED = """
import numpy as np
from unittest.mock import patch
driver = context._driver
victim = driver.hosts._hosts.hosts[1].description.name
memory = driver.stored.own.fetcher._reads._memory
once = TaskOptions(max_retries=0)
def make(n):
    time.sleep(0.1)
    return np.full(5_000_000, n, np.uint8)
def place_of(ref):
    return driver.stored._places[driver.objects.payload(ref.id).data].host
refs = [context.create_task(make, (n,), options=once) for n in range(12)]
context.wait(refs, num_returns=12, timeout=60)
on_victim = [ref for ref in refs if place_of(ref) == victim]
others = [ref for ref in refs if place_of(ref) != victim]
def stop_and_read(handle, target, read=memory.read):
    os.killpg(int(os.environ["VICTIM"]), signal.SIGSTOP)
    read(handle, target)
started = time.monotonic()
with patch.object(memory, "read", stop_and_read):
    try:
        say(len(context.get(on_victim[0], timeout=60)))
    except ObjectLostError:
        say("lost")
say(time.monotonic() - started < 8)
say({int(each[-1]) for each in context.get(others, timeout=60)} < set(range(12)))
say(driver.stored.own.fetcher._unread)
context.close()
"""


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MonarchWorkers]:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    workers = MonarchWorkers(tmp_path, 2)
    yield workers
    workers.close()


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    run = runner_in(tmp_path)
    return lambda text, *arguments, **variables: run(PRELUDE + text, *arguments, **variables)


# By the way of objects between hosts: how the driver fetched one, and what programs begin with.
WAYS = {"tcp": "", "rdma": "", "relay": WITHOUT_CONNECTIONS}


@pytest.mark.parametrize("way", WAYS)
def test_objects_move_between_hosts_once_each(
    workers: MonarchWorkers, run_program: RunProgram, way: str
) -> None:
    found = run_on(workers, run_program, OBJECTS, way)
    assert found == ["1 True 0", "True 2", f"10000000 {way} True", "15000", "9 9", "8 8", "0 0"]


@pytest.mark.parametrize("way", WAYS)
def test_lost_objects_are_computed_again_or_have_an_error_that_names_host_and_producer(
    workers: MonarchWorkers, run_program: RunProgram, way: str
) -> None:
    found = run_on(workers, run_program, LOSS, way, VICTIM=str(workers.processes[1].pid))
    assert found == [
        *["True"] * 6,
        "{'The value of make was lost with its host HOST.'}",
        "{'The value of Worker.make was lost with its host HOST.'}",
        "{'The value of put was lost with its host HOST.'}",
        "0 0",
    ]


def test_a_read_from_a_host_that_has_stopped_ends_when_the_host_is_known_to_be_lost(
    workers: MonarchWorkers, run_program: RunProgram
) -> None:
    found = run_on(workers, run_program, STOPPED, "rdma", VICTIM=str(workers.processes[1].pid))
    assert found == ["lost", "True", "True", "set()"]


def run_on(
    workers: MonarchWorkers, run_program: RunProgram, program: str, way: str, **variables: str
) -> list[str]:
    """Run a program on hosts whose objects travel in a way; return what it said."""
    transport = "rdma" if way == "rdma" else "tcp"
    arguments = (workers.certificates, *workers.addresses)
    return run_program(WAYS[way] + program, *arguments, TRANSPORT=transport, **variables)
