"""The reports of a process of tasks about its references."""

from __future__ import annotations

from monarch_client.context.refs import ObjectRef
from monarch_client.context.task_context import TaskContext
from monarch_client.context.wire import Call, Held


class Answered(TaskContext):
    """A context whose requests are answered at once."""

    def _request(self, *_):
        return None


def test_a_reference_is_dropped_as_often_as_the_driver_counts_it() -> None:
    context = Answered(1, "")
    call = Call(b"actor", "", b"", b"", None)
    handles = []
    for _ in range(2):
        context._submit(call)
        handles.append(ObjectRef(call.id, context))
    assert context.changes() == Held([], [])
    del handles[0]
    assert context.changes() == Held([], [])
    del handles[0]
    assert context.changes() == Held([], [call.id, call.id])


def test_a_reference_that_came_in_a_value_is_kept_once_and_dropped_once() -> None:
    context = Answered(1, "")
    for ref in (b"a", b"b", b"b"):
        context.keep(ref)
    assert context.changes() == Held([b"a", b"b"], [])
    for ref in (b"a", b"b"):
        context.drop(ref)
    assert context.changes() == Held([], [b"a"])
