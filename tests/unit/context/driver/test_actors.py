"""Calls whose arguments are lost, or fail, before the calls are sent, and calls that have ended."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monarch_client.context.driver.activity import Activity
from monarch_client.context.driver.actors import DRIVER, Actors
from monarch_client.context.driver.executors import Executor
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.pending_call import PendingCall
from monarch_client.context.errors import ObjectLostError
from monarch_client.context.scheduling import Scheduler
from monarch_client.context.values import STORED, VALUE, Payload, error_payload
from monarch_client.context.wire import TO_EXECUTOR, Call, Done, FrameBuffer, NewActor, Run

ACTOR = b"actor"
PLAIN = Payload(VALUE, b"x")
LOST = error_payload(ObjectLostError("lost"))
MANY = 256


class Stored:
    """Values on hosts that every reader gets as they are."""

    def readable(self, payload: Payload, host: str) -> Payload:
        return payload

    def adopt(self, *_: object) -> None: ...

    refuse = discard = adopt


class Link:
    """A host that keeps what an executor was sent."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def send(self, executor: int, data: bytes) -> None:
        self.runs += FrameBuffer[Run](TO_EXECUTOR).feed(data)


class World:
    """Actors of one executor; one of them, `ACTOR`, waits for its process."""

    def __init__(self) -> None:
        self.link = Link()
        self.executor = Executor(1, "a", ((), ()), cast(Any, self.link))
        self.objects = ObjectTable(cast(Any, Stored()))
        scheduler = Scheduler()
        scheduler.add_host("a", {"CPU": 10000})
        pool = SimpleNamespace(acquire=lambda *_, **__: self.executor)
        self.actors = Actors(self.objects, scheduler, cast(Any, pool), Activity())
        self.actors.create(NewActor(Call(ACTOR, "w", b"", b"", PLAIN)))

    def start(self) -> None:
        self.actors.pump()
        self.done(ACTOR)

    def store(self, ref: bytes) -> None:
        self.objects.add(ref)
        self.objects.settle(ref, Payload(STORED, ref, (), 9), "b")

    def submit(self, ref: bytes, *needs: bytes) -> None:
        places = list[int | str](range(len(needs)))
        call = Call(ref, "w", b"", b"", PLAIN, places, list(needs), actor=ACTOR, method="m")
        self.actors.submit(call, DRIVER)

    def done(self, ref: bytes) -> None:
        self.actors.on_done(self.executor, Done(ref, PLAIN, 1))

    def sent(self) -> list[bytes]:
        return [each.id for each in self.link.runs if each.id != ACTOR]


def test_a_call_whose_argument_was_lost_is_sent_once_it_has_it_again() -> None:
    world = World()
    world.start()
    world.store(b"A")
    world.store(b"B")
    for number in range(MANY):
        world.submit(b"%d" % number)
    world.submit(b"of A and B", b"A", b"B")
    world.submit(b"of B", b"B")
    world.objects.lose([b"A", b"B"])
    world.objects.settle(b"A", LOST)
    for number in range(MANY):
        world.done(b"%d" % number)
    world.actors.await_again()
    assert len(world.sent()) == MANY
    world.objects.settle(b"B", PLAIN)
    (run,) = world.link.runs[MANY + 1 :]
    assert (run.id, run.values) == (b"of B", [PLAIN])


def test_the_failure_of_a_call_does_not_let_others_overtake_those_before_it() -> None:
    world = World()
    world.objects.add(b"lost")
    world.objects.settle(b"lost", LOST)
    world.submit(b"first")
    world.submit(b"second", b"lost")
    world.submit(b"third", b"second")
    world.submit(b"fourth")
    world.start()
    assert world.sent() == [b"first", b"fourth"]


def test_no_message_lacks_an_argument() -> None:
    world = World()
    world.store(b"A")
    call = Call(b"of A", "w", b"", b"", PLAIN, [0], [b"A"])
    pending = PendingCall(call, world.objects, lambda _: None)
    pending.await_arguments()
    world.objects.lose([b"A"])
    with pytest.raises(AssertionError):
        pending.message(world.executor)


def test_a_call_that_has_ended_is_not_kept_by_the_calls_that_it_has_made() -> None:
    objects = World().objects

    def on_ready(_: PendingCall) -> None: ...

    ended = PendingCall(Call(b"ended", "w", b"", b"", PLAIN), objects, on_ready)
    child = PendingCall(Call(b"child", "w", b"", b"", PLAIN), objects, lambda _: None)
    ended.add_child(child)
    assert ended.children == [b"child"]
    ended.release()
    kept = weakref.ref(on_ready)
    del ended, on_ready
    assert kept() is None
    child.release()
