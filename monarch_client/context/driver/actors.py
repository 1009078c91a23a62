"""The actors of a context: each has a process of its own, and the calls of one caller in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from monarch_client.context.driver.activity import Activity, shown
from monarch_client.context.driver.executors import Executor, ExecutorPool
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.pending_call import PendingCall
from monarch_client.context.errors import ActorDiedError, TaskCancelledError
from monarch_client.context.scheduling import Scheduler
from monarch_client.context.values import ERROR, Payload, error_payload, error_texts
from monarch_client.context.wire import Call, Done, Interrupt, NewActor
from monarch_client.wire.tasks import ContextActor

# The driver as a caller; executors have their numbers.
DRIVER = 0
_MOST_SENT = 256
_MOST_FORMER = 20
_MOST_WHY_CHARS = 300


class Actor:
    """One actor."""

    def __init__(self, new: NewActor) -> None:
        self.new = new
        self.shape = tuple(new.call.shape)
        self.construction: PendingCall
        self.executor: Executor | None = None
        # What calls return once the actor has ended.
        self.death: Payload | None = None
        # By caller: its calls that were not sent, in order.
        self.waiting: dict[int, deque[PendingCall]] = {}
        self.sent: dict[bytes, PendingCall] = {}
        # More are sent once half of them have ended: many in one message.
        self.most_sent = max(_MOST_SENT, 2 * new.max_concurrency)
        self.is_constructed = False
        # The resources that it has waited for; "": it has not waited for long.
        self.waits_for = ""
        # Its calls that have ended.
        self.calls = 0

    @property
    def id(self) -> bytes:
        """The id that handles have."""
        return self.new.call.id


class Actors:
    """All actors of a context."""

    def __init__(
        self, objects: ObjectTable, scheduler: Scheduler, pool: ExecutorPool, activity: Activity
    ) -> None:
        self._objects = objects
        self._scheduler = scheduler
        self._pool = pool
        self._activity = activity
        # What is known of the latest actors that have ended and have no handle.
        self._former: deque[ContextActor] = deque(maxlen=_MOST_FORMER)
        self._actors: dict[bytes, Actor] = {}
        self._names: dict[str, bytes] = {}
        # Actors that wait for resources, the oldest first.
        self._starting: dict[bytes, Actor] = {}
        self._calls: dict[bytes, tuple[Actor, PendingCall]] = {}

    def __len__(self) -> int:
        return len(self._actors)

    def create(self, new: NewActor) -> bytes:
        """Take a new actor, or find it by name; count one handle and return its id."""
        taken = self._names.get(new.name) if new.name else None
        if taken is not None:
            if not new.get_if_exists:
                raise ValueError(
                    f"The name {new.name!r} is taken. Use get_if_exists=True to get that actor."
                )
            self._objects.keep(taken)
            return taken
        actor = Actor(new)
        self._scheduler.check(actor.shape)
        actor.construction = PendingCall(new.call, self._objects, self._on_construction)
        self._objects.add_actor(actor.id, lambda: self._end_unused(actor))
        if new.detached:
            self._objects.keep(actor.id)
        self._actors[actor.id] = actor
        if new.name:
            self._names[new.name] = actor.id
        actor.construction.await_arguments()
        return actor.id

    def find(self, name: str) -> bytes:
        """Find an actor by name; count one handle and return its id."""
        actor = self._names.get(name)
        if actor is None:
            raise ValueError(f"No actor has the name {name!r}. It may have ended.")
        self._objects.keep(actor)
        return actor

    def submit(self, call: Call, caller: int) -> None:
        """Take a call of an actor's method."""
        actor = self._actors[call.actor]
        call.name = f"{actor.new.call.name}.{call.method}"
        pending = PendingCall(call, self._objects, lambda _: self._send_next(actor, caller))
        self._objects.add(call.id)
        self._calls[call.id] = actor, pending
        # Of many actors of a class the same.
        pending.counted = f"{actor.new.kind}.{call.method}"
        self._activity.submitted(pending.counted)
        if actor.death is not None:
            self._end_call(pending, actor.death)
            return
        actor.waiting.setdefault(caller, deque()).append(pending)
        pending.await_arguments()

    def pump(self) -> None:
        """Start the actors that fit now."""
        for actor in list(self._starting.values()):
            allocation = self._scheduler.hold(actor.shape)
            if allocation is None:
                continue
            del self._starting[actor.id]
            executor = actor.executor = self._pool.acquire(
                allocation, actor.new.call.packages, fresh=True
            )
            executor.actor = actor.id
            self._send(actor, [actor.construction])
            for caller in list(actor.waiting):
                self._send_next(actor, caller)

    def find_call(self, ref: bytes) -> PendingCall | None:
        """Return a call that has not ended."""
        found = self._calls.get(ref)
        return found[1] if found else None

    def cancel(self, ref: bytes) -> bool:
        """Cancel a call. Whether it was one that has not ended."""
        if ref not in self._calls:
            return False
        actor, pending = self._calls[ref]
        pending.is_cancelled = True
        if ref in actor.sent:
            self._objects.settle(ref, _cancelled(pending))
            if actor.executor is not None:
                actor.executor.request(Interrupt(ref))
            return True
        for caller, calls in list(actor.waiting.items()):
            if pending in calls:
                calls.remove(pending)
                self._end_call(pending, _cancelled(pending))
                self._send_next(actor, caller)
        return True

    def on_done(self, executor: Executor, done: Done) -> None:
        """End a call, or a construction: if that failed, each call gets its error."""
        actor = self._actors.get(executor.actor)
        executor.calls.pop(done.id, None)
        if actor is None:
            # It failed and had no handles; what its process has sent meanwhile is for nobody.
            self._objects.refuse(done.payload, executor.host)
            return
        if done.id == actor.id:
            actor.construction.release()
            actor.is_constructed = True
            if done.payload.kind == ERROR:
                self._activity.note_failure(actor.new.call.name, done.payload, executor.host)
                self._die(actor, done.payload)
                executor.kill()
            return
        pending = actor.sent.pop(done.id, None)
        if pending is not None:
            actor.calls += 1
            if not pending.is_cancelled:
                self._activity.ran(pending.counted, done.payload, done.ran_ns, executor.host)
            self._end_call(pending, done.payload, executor.host, has_run=True)
        if actor.waiting and len(actor.sent) <= actor.most_sent // 2:
            for caller in list(actor.waiting):
                self._send_next(actor, caller)

    def on_ended(self, executor: Executor, ended: str) -> None:
        """Let the calls of an actor fail whose process has ended."""
        actor = self._actors.get(executor.actor)
        allocation = executor.allocation
        if allocation is not None:
            self._scheduler.release(allocation)
        if actor is None:
            return
        host = allocation.host if allocation else ""
        name = actor.new.call.name
        self._die(
            actor,
            error_payload(ActorDiedError(f"The process of {name} on {host} {ended}.")),
        )

    def running(self) -> Iterator[str]:
        """Yield the names of the calls that run now: the first that each actor was sent."""
        for actor in self._actors.values():
            if actor.is_constructed:
                for pending in islice(actor.sent.values(), actor.new.max_concurrency):
                    yield self._activity.counted_as(pending.counted)

    def rows(self, most: int, *, is_open: bool) -> tuple[list[ContextActor], int]:
        """Return what is known of the actors, those that live first, and how many are left out."""
        living = [each for each in self._actors.values() if each.death is None]
        dead = [each for each in self._actors.values() if each.death is not None]
        rows = [_row(each, _state_of(each, is_open=is_open)) for each in [*living, *dead][:most]]
        rows += [*reversed(self._former)][: most - len(rows)]
        return rows, max(0, len(self._actors) - most)

    def await_again(self) -> None:
        """Let calls that were not sent wait for arguments which were lost since they were ready."""
        for actor in list(self._actors.values()):
            calls = [each for waiting in actor.waiting.values() for each in waiting]
            if actor.id in self._starting and not actor.construction.has_arguments:
                del self._starting[actor.id]
                calls.append(actor.construction)
            for pending in calls:
                if not pending.has_arguments:
                    pending.await_arguments()

    def waiting_texts(self) -> dict[object, str]:
        """Describe the actors that wait for resources, by their ids; their rows show it, too."""
        for actor in self._starting.values():
            actor.waits_for = f"Waits for {self._scheduler.shortage(actor.shape)}."
        return {
            actor.id: f"The actor {actor.new.call.name} waits for"
            f" {self._scheduler.shortage(actor.shape)}. Actors keep what they take until they end."
            for actor in self._starting.values()
        }

    def fail_infeasible(self) -> None:
        """Let actors die that wait for resources which no host has any more: one was lost."""
        for actor in list(self._starting.values()):
            if error := self._scheduler.refusal(actor.shape):
                self._die(actor, error_payload(error))

    def _on_construction(self, pending: PendingCall) -> None:
        actor = self._actors[pending.call.id]
        if pending.failure is not None:
            self._die(actor, pending.failure)
        else:
            self._starting[actor.id] = actor

    def _send_next(self, actor: Actor, caller: int) -> None:
        """Send the calls of a caller, up to the first that waits for an argument."""
        calls = actor.waiting.get(caller)
        if calls is None or actor.executor is None:
            return
        sendable: list[PendingCall] = []
        while calls and calls[0].is_sendable and len(actor.sent) < actor.most_sent:
            pending = calls.popleft()
            if pending.failure is not None:
                # Its end may make the next calls ready, which must follow those before it.
                self._send(actor, sendable)
                sendable = []
                self._end_call(pending, pending.failure)
            else:
                actor.sent[pending.call.id] = pending
                sendable.append(pending)
        self._send(actor, sendable)
        if not calls:
            actor.waiting.pop(caller, None)

    def _send(self, actor: Actor, calls: list[PendingCall]) -> None:
        executor = actor.executor
        if executor is None:
            raise AssertionError  # only sent to actors that have one
        for pending in calls:
            executor.calls[pending.call.id] = None
        if calls:
            concurrency = actor.new.max_concurrency
            executor.send(b"".join(pending.message(executor, concurrency) for pending in calls))

    def _end_call(
        self, pending: PendingCall, payload: Payload, host: str = "", *, has_run: bool = False
    ) -> None:
        del self._calls[pending.call.id]
        if pending.is_cancelled:
            self._activity.cancelled(pending.counted)
        elif not has_run:
            self._activity.failed(pending.counted, payload)
        self._objects.settle(pending.call.id, payload, host, pending.call.name)
        pending.release()

    def _die(self, actor: Actor, death: Payload) -> None:
        """Let all calls of an actor return `death`, now and later."""
        if actor.death is not None:
            return
        actor.death = death
        self._starting.pop(actor.id, None)
        if self._names.get(actor.new.name) == actor.id:
            del self._names[actor.new.name]
        actor.construction.release()
        sent, actor.sent = actor.sent, {}
        waiting, actor.waiting = actor.waiting, {}
        for pending in [*sent.values(), *(each for calls in waiting.values() for each in calls)]:
            self._end_call(pending, death)
        if actor.new.detached:
            # The context kept it for callers that have no handle yet: now nobody can find it.
            self._objects.drop(actor.id)

    def _end_unused(self, actor: Actor) -> None:
        """End an actor without handles and calls."""
        self._actors.pop(actor.id, None)
        self._starting.pop(actor.id, None)
        if self._names.get(actor.new.name) == actor.id:
            del self._names[actor.new.name]
        actor.construction.release()
        self._former.append(_row(actor, "ended" if actor.death is None else "dead"))
        if actor.executor is not None:
            actor.executor.close()


def _cancelled(pending: PendingCall) -> Payload:
    return error_payload(TaskCancelledError(f"{pending.call.name} was cancelled."))


def _state_of(actor: Actor, *, is_open: bool) -> str:
    if actor.death is not None:
        return "dead"
    if not is_open:
        return "ended"
    return "alive" if actor.is_constructed else "pending"


def _why(actor: Actor) -> str:
    """Return why an actor has died, or has not started."""
    if actor.death is not None:
        return error_texts(actor.death)[0]
    return "" if actor.executor else actor.waits_for


def _row(actor: Actor, state: str) -> ContextActor:
    executor = actor.executor
    return ContextActor(
        name=shown(actor.new.name),
        kind=shown(actor.new.kind),
        state=state,
        host=shown(executor.host) if executor else "",
        pid=executor.pid or None if executor else None,
        calls=actor.calls,
        why=shown(_why(actor), _MOST_WHY_CHARS),
    )
