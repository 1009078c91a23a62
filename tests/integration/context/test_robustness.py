"""Mistakes and signals that end one call, and not the context."""

from __future__ import annotations

import os
import signal
import weakref
from contextlib import suppress
from pathlib import Path

import pytest

from monarch_client.context import ActorOptions, JobContext, TaskOptions, get_job_context
from monarch_client.context.driver import tasks
from monarch_client.context.errors import ContextClosedError
from monarch_client.context.wire import Cancel
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S4.5")


@pytest.mark.slow
def test_actors_that_fail_and_have_no_handles_leave_the_context_usable(context: JobContext) -> None:
    class Bad:
        def __init__(self):
            raise LookupError("no data")

    for _ in range(20):
        refs = [context.create_actor(Bad).anything() for _ in range(3)]
        for ref in refs:
            with pytest.raises(LookupError):
                context.get(ref, timeout=60)
    assert context.get(context.create_task(abs, (-1,)), timeout=60) == 1


def test_a_request_that_cannot_be_read_ends_one_connection(context: JobContext) -> None:
    def send() -> str:
        try:
            get_job_context()._request(Cancel(7))
        except ContextClosedError:
            return "closed"
        return "answered"

    assert context.get(context.create_task(send), timeout=60) == "closed"
    assert context.get(context.create_task(abs, (-1,)), timeout=60) == 1


def test_a_name_that_no_message_can_have_is_refused_before_the_call(context: JobContext) -> None:
    with pytest.raises(ValueError, match="name of an argument"):
        context.create_task(dict, kwargs={"\ud800": 1})
    with pytest.raises(TypeError, match="name of a resource"):
        JobContext(resources={1: 1})  # type: ignore[dict-item]


# Python reports what a handler raises in a finalizer, and cannot raise it there.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_moment_leave_the_context_usable(context: JobContext) -> None:
    before = signal.getsignal(signal.SIGALRM)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    try:
        completed = 0
        for attempt in range(300):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (attempt % 30 + 1))
                context.create_task(abs, (-1,))
                signal.setitimer(signal.ITIMER_REAL, 0)
                completed += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert completed < 300
    assert context.get(context.create_task(abs, (-2,)), timeout=60) == 2
    assert eventually(lambda: len(context._driver.tasks) == 0)


def test_get_and_cancel_refuse_what_they_would_ignore(context: JobContext) -> None:
    ref = context.put(1)
    for wrong in ({ref}, {"a": ref}, (each for each in [ref])):
        with pytest.raises(TypeError, match="get takes"):
            context.get(wrong)
    assert context.get({1, 2}) == {1, 2}
    actor = context.create_actor(dict)
    with pytest.raises(TypeError, match="cancel takes"):
        context.cancel(actor)


def test_a_context_that_nothing_refers_to_ends_its_processes() -> None:
    made = JobContext(resources={"CPU": 1})
    zygote = Path(f"/proc/{made._driver.hosts.link.pid}")
    known = weakref.ref(made)
    del made
    assert known() is None
    assert not zygote.exists()


@pytest.mark.slow
def test_the_cancel_of_a_task_that_was_sent_ahead_kills_no_other_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "GRACE_S", 0.1)
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def read(path: Path | None) -> str:
        return path.read_text() if path else ""

    once = TaskOptions(max_retries=0)
    with JobContext(resources={"CPU": 1}) as made:
        made.get([made.create_task(read, (None,)) for _ in range(50)])  # known to be short
        runs = made.create_task(read, (gate,), options=once)
        follows = made.create_task(read, (None,))
        executor = made._driver.tasks._tasks[runs.id].executor
        made._driver.loop.wake()
        assert eventually(lambda: len(executor.calls) == 2)
        made.cancel(follows)
        assert eventually(lambda: len(executor.calls) < 2)
        assert made.wait([runs], timeout=0) == ([], [runs])  # else nobody reads the gate
        gate.write_text("read")
        assert made.get(runs, timeout=60) == "read"


@pytest.mark.slow
def test_what_was_dropped_makes_room_for_the_next_object() -> None:
    with JobContext(resources={"CPU": 1}, object_store_bytes=32_000_000) as made:
        made._driver.stored.store._spill = None  # as if the disk were full
        for _ in range(3):
            ref = made.put(bytes(20_000_000))
            del ref


@pytest.mark.slow
def test_what_a_task_drops_is_freed_while_it_runs(tmp_path: Path) -> None:
    gates = [tmp_path / "drop", tmp_path / "end"]
    for gate in gates:
        os.mkfifo(gate)

    def work() -> str:
        context = get_job_context()
        refs = [context.put(bytes(100_000)) for _ in range(3)]
        gates[0].read_text()
        refs.clear()
        return gates[1].read_text()

    with JobContext(resources={"CPU": 1}) as made:
        driver = made._driver
        ref = made.create_task(work)
        assert eventually(lambda: driver.stored.store.usage().objects == 3)
        gates[0].write_text("drop")
        assert eventually(lambda: driver.stored.store.usage().objects == 0)
        assert len(driver.objects) == 1  # its result
        gates[1].write_text("end")
        assert made.get(ref, timeout=60) == "end"


def test_references_in_results_outlive_the_drops_of_other_calls(context: JobContext) -> None:
    class Makes:
        def one(self, n):
            made = get_job_context()
            return [made.put(n)]

    handle = context.create_actor(Makes, options=ActorOptions(max_concurrency=4))
    results = context.get([handle.one(n) for n in range(100)], timeout=60)
    assert context.get([each[0] for each in results]) == list(range(100))
