"""The recovery of objects whose host is lost: what is computed again, and what is kept of it."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import Mock

import pytest

from monarch_client.context.driver import stored_objects
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.recovery import Recovery
from monarch_client.context.driver.stored_objects import StoredObjects
from monarch_client.context.values import STORED, VALUE, Payload
from monarch_client.context.wire import Call

TASK = Payload(VALUE, b"")


class World:
    """The objects of a driver and of the hosts `a` and `b`, of which `b` is lost."""

    def __init__(self) -> None:
        self.stored = StoredObjects()
        self.a = Mock()
        self.stored.add_host("a", self.a)
        self.stored.add_host("b", Mock())
        self.objects = ObjectTable(self.stored)
        self.tasks = Mock()
        self.tasks.has.return_value = False

    def make(self, ref: bytes, refs: tuple[bytes, ...] = ()) -> None:
        """Let a task on `b` make an object that contains references."""
        if ref not in self.objects:
            self.objects.add(ref)
        payload = Payload(STORED, b"value of " + ref, refs, 9)
        call = Call(ref, "f", b"", b"", TASK, max_retries=3)
        self.objects.keep_call(call, payload, "b", 0)
        self.objects.settle(ref, payload, "b", "f")

    def lose_b(self) -> list[bytes]:
        """Remove host `b`; return the references that are computed again."""
        recovery = Recovery(self.objects, self.stored, cast(Any, self.tasks), Mock())
        recovery.recover("b")
        return [each.args[0].id for each in self.tasks.submit_again.call_args_list]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(stored_objects, "HostObjects", Mock())
    return World()


def test_an_object_that_only_a_lost_one_contained_is_not_computed_again(world: World) -> None:
    world.make(b"inner")
    world.make(b"outer", (b"inner",))
    world.objects.drop(b"inner")
    assert world.lose_b() == [b"outer"]
    assert len(world.stored.lineage) == 0


def test_no_call_is_kept_of_a_result_that_nothing_refers_to_or_that_was_cancelled(
    world: World,
) -> None:
    payload = Payload(STORED, b"value", (), 9)
    world.objects.keep_call(Call(b"unknown", "f", b"", b"", TASK, max_retries=3), payload, "b", 0)
    world.objects.add(b"cancelled")
    world.objects.settle(b"cancelled", TASK)
    world.make(b"cancelled")
    assert len(world.stored.lineage) == 0


def test_copies_of_lost_objects_are_freed_on_the_hosts_that_fetched_them(world: World) -> None:
    world.make(b"ref")
    world.objects.readable(b"ref", "a")
    world.lose_b()
    world.a.forget_copy.assert_called_once_with(b"value of ref")
