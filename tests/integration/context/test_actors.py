"""Actors: objects in processes of their own."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from monarch_client.context import ActorOptions, JobContext, Lifetime, get_job_context
from monarch_client.context.driver import shortage
from monarch_client.context.errors import ActorDiedError, TaskCancelledError
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S4.3")


def counter_class():
    class Counter:
        def __init__(self, start=0, *, step=1):
            self.n, self.step = start, step

        def add(self, by=None):
            self.n += self.step if by is None else by
            return self.n

        def fail(self):
            raise ValueError("not this time")

        def size(self):
            return self.n

        def pid(self):
            import os

            return os.getpid()

        def stop(self):
            return "stopped"

    return Counter


def test_any_class_works_also_one_with_methods_of_any_name(context: JobContext) -> None:
    counter = context.create_actor(counter_class(), (10,), {"step": 2})
    assert context.get([counter.add(), counter.add(by=5), counter.size()]) == [12, 17, 17]
    assert context.get(counter.stop()) == "stopped"
    with pytest.raises(AttributeError, match="slice"):
        context.get(counter.slice())


def test_the_calls_of_a_caller_run_in_order(context: JobContext) -> None:
    counter = context.create_actor(counter_class())
    late = context.create_task(lambda: __import__("time").sleep(0.05) or 100)
    calls = [counter.add(), counter.add(late), *(counter.add() for _ in range(100))]
    assert context.get(calls) == [1, 101, *range(102, 202)]


def test_a_failed_call_leaves_the_actor_as_it_was(context: JobContext) -> None:
    counter = context.create_actor(counter_class())
    first, failed, last = counter.add(), counter.fail(), counter.add()
    assert context.get([first, last]) == [1, 2]
    with pytest.raises(ValueError, match="not this time"):
        context.get(failed)


def test_unnamed_actors_are_separate(context: JobContext) -> None:
    actors = [context.create_actor(counter_class(), (n,)) for n in range(12)]
    assert context.get([each.size() for each in actors]) == list(range(12))
    assert len(set(context.get([each.pid() for each in actors]))) == 12


def test_a_taken_name_is_refused_unless_its_actor_is_requested(context: JobContext) -> None:
    first = context.create_actor(counter_class(), (110,), options=ActorOptions(name="counter"))
    with pytest.raises(ValueError, match="'counter' is taken"):
        context.create_actor(counter_class(), options=ActorOptions(name="counter"))
    options = ActorOptions(name="counter", get_if_exists=True)
    second = context.create_actor(counter_class(), (999,), options=options)
    assert second == first
    assert context.get([first.size(), second.add(), first.add()]) == [110, 111, 112]


def test_a_named_actor_is_found_by_the_driver_tasks_and_actors(context: JobContext) -> None:
    class Finds:
        def add(self):
            made = get_job_context()
            return made.get(made.get_actor("known").add())

    known = context.create_actor(counter_class(), options=ActorOptions(name="known"))
    assert context.get_actor("known") == known
    finder = context.create_actor(Finds)
    assert context.get(context.create_task(lambda: Finds().add())) == 1
    assert context.get(finder.add()) == 2
    assert context.get(context.get_actor("known").add()) == 3
    for find in (lambda: context.get_actor("no"), lambda: find_in_a_task(context, "no")):
        with pytest.raises(ValueError, match="No actor has the name 'no'"):
            find()


def find_in_a_task(context: JobContext, name: str) -> None:
    context.get(context.create_task(lambda: get_job_context().get_actor(name)))


def test_one_actor_is_made_if_many_tasks_and_actors_want_its_name(context: JobContext) -> None:
    klass = counter_class()

    class Wants:
        def add(self):
            options = ActorOptions(name="wanted", get_if_exists=True)
            made = get_job_context()
            return made.get(made.create_actor(klass, options=options).add())

    wants = [context.create_actor(Wants) for _ in range(3)]
    lasts = context.create_actor(klass, options=ActorOptions(name="wanted"))
    calls = [each.add() for each in wants]
    calls += [context.create_task(lambda: Wants().add()) for _ in range(7)]
    assert sorted(context.get(calls)) == list(range(1, 11))
    assert context.get(lasts.size()) == 10


def test_an_ephemeral_actor_ends_with_its_last_handle_and_frees_its_name(
    context: JobContext,
) -> None:
    options = ActorOptions(name="brief")
    actor = context.create_actor(counter_class(), options=options)
    last = actor.pid()
    del actor
    pid = context.get(last)
    assert eventually(lambda: not Path(f"/proc/{pid}").exists())
    again = context.create_actor(counter_class(), options=options)
    assert context.get(again.add()) == 1
    del again
    assert context.create_actor(counter_class(), options=options) is not None  # at once


def test_an_actor_ends_with_its_last_handle_while_its_driver_is_idle(context: JobContext) -> None:
    actor = context.create_actor(counter_class())
    pid = context.get(actor.pid())
    del actor
    assert eventually(lambda: not Path(f"/proc/{pid}").exists(), timeout_s=10)


def test_a_detached_actor_lives_without_handles(context: JobContext) -> None:
    options = ActorOptions(name="lasting", get_if_exists=True, lifetime=Lifetime.DETACHED)
    context.get(context.create_actor(counter_class(), options=options).add())
    again = context.create_actor(counter_class(), options=options)
    assert context.get(again.add()) == 2


def test_handles_work_in_tasks_and_keep_their_actor(context: JobContext) -> None:
    actor = context.create_actor(counter_class())
    task = context.create_task(
        lambda actor: context.get([actor.add() for _ in range(10)]), (actor,)
    )
    del actor
    assert context.get(task) == list(range(1, 11))


def test_calls_run_at_once_up_to_max_concurrency(context: JobContext) -> None:
    class Meeting:
        def __init__(self):
            import threading

            self.barrier = threading.Barrier(3, timeout=60)

        def meet(self):
            return self.barrier.wait() >= 0

    actor = context.create_actor(Meeting, options=ActorOptions(max_concurrency=3))
    assert context.get([actor.meet() for _ in range(3)]) == [True] * 3


def test_an_exit_of_an_actor_ends_it_as_in_ray(context: JobContext) -> None:
    class Leaves:
        def leave(self):
            sys.exit(3)

        def answer(self):
            return 1

    class LeavesAtOnce(Leaves):
        def __init__(self):
            sys.exit("no data")

    actor = context.create_actor(Leaves)
    assert context.get(actor.answer()) == 1
    for call in (actor.leave(), actor.answer(), context.create_actor(LeavesAtOnce).answer()):
        with pytest.raises(ActorDiedError, match=r"exited with status [31]"):
            context.get(call, timeout=60)


def test_an_actor_that_waits_for_resources_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortage, "CHECK_EACH_S", 0.05)
    options = ActorOptions(resources={"CPU": 1})
    with JobContext(resources={"CPU": 2}) as made:
        actors = [made.create_actor(counter_class(), options=options) for _ in range(2)]
        made.get([each.add() for each in actors])
        last = made.create_actor(counter_class(), options=options)
        task = made.create_task(abs, (-1,))
        waits = [
            "Counter waits for 1 CPU; .* has 0 CPU free. Actors keep what they take",
            "abs waits for 1 CPU; .* has 0 CPU free. Actors have what it needs",
        ]
        assert eventually(lambda: all(re.search(each, caplog.text) for each in waits))
        assert len(caplog.records) == 2  # each once
        shown = [row.why for row in made._driver.actors.rows(10, is_open=True)[0]]
        assert any(each.startswith("Waits for 1 CPU") for each in shown)
        actors.clear()
        assert made.get([last.add(), task], timeout=60) == [1, 1]


def test_the_error_of_a_constructor_is_that_of_each_call(context: JobContext) -> None:
    class Broken:
        def __init__(self):
            raise LookupError("no data")

    actor = context.create_actor(Broken, options=ActorOptions(name="broken"))
    for _ in range(2):
        with pytest.raises(LookupError, match="no data"):
            context.get(actor.anything())
    # Its name is free.
    assert context.create_actor(counter_class(), options=ActorOptions(name="broken")) != actor


def test_calls_of_an_actor_that_died_fail_and_say_how_it_died(context: JobContext) -> None:
    actor = context.create_actor(counter_class(), options=ActorOptions(name="victim"))
    pid = context.get(actor.pid())
    os.kill(pid, 9)
    for _ in range(2):
        with pytest.raises(ActorDiedError, match=r"victim on .* was killed by SIGKILL"):
            context.get(actor.add(), timeout=60)
    options = ActorOptions(name="victim", get_if_exists=True)
    assert context.get(context.create_actor(counter_class(), options=options).add()) == 1


def test_a_call_can_be_cancelled_and_the_actor_goes_on(context: JobContext, tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)

    class Sleeper:
        def sleep(self):
            import time

            fifo.write_text("running")
            time.sleep(600)

        def answer(self):
            return 1

    actor = context.create_actor(Sleeper)
    running, queued, last = actor.sleep(), actor.sleep(), actor.answer()
    fifo.read_text()
    context.cancel(queued)
    context.cancel(running)
    assert context.get(last, timeout=60) == 1
    for ref in (running, queued):
        with pytest.raises(TaskCancelledError):
            context.get(ref)
