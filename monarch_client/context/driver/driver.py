"""The driver of a context: it joins objects, tasks, actors and the executors of this host."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from monarch_client.context.driver.activity import Activity
from monarch_client.context.driver.actors import DRIVER, Actors
from monarch_client.context.driver.attaching import LocalHosts, MeshHosts
from monarch_client.context.driver.executors import Executor, ExecutorPool
from monarch_client.context.driver.inline_budget import InlineBudget
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.pending_call import PendingCall
from monarch_client.context.driver.recovery import Recovery
from monarch_client.context.driver.reporting import SummaryWriter
from monarch_client.context.driver.shortage import Shortage
from monarch_client.context.driver.stored_objects import StoredObjects
from monarch_client.context.driver.tasks import Tasks
from monarch_client.context.driver.waiter import Waiter
from monarch_client.context.errors import ContextClosedError, ContextError
from monarch_client.context.hosting.loop import Loop
from monarch_client.context.hosting.uninterrupted import DEFERRAL
from monarch_client.context.scheduling import Scheduler
from monarch_client.context.values import Payload, error_payload
from monarch_client.context.wire import Call, Done, Held, NewActor, Recall, Returned, Started

log = logging.getLogger("monarch_client.context")
_MOST_RECALLED = 1 << 16
# Dropped references that wait for the loop; then it is woken for them.
_DROPS_AT_ONCE = 1000


class Driver:
    """One context's state. Methods without `with self.loop.lock` need it to be held."""

    def __init__(
        self,
        mesh: Any,
        resources: Mapping[str, float] | None,
        stored: StoredObjects,
        inline: InlineBudget,
    ) -> None:
        self.loop = Loop(self._settle, self._fail)
        self.stored = stored
        self.objects = ObjectTable(stored, inline)
        self.scheduler = Scheduler()
        self.pool = ExecutorPool(self)
        self.activity = Activity()
        self.tasks = Tasks(self.loop, self.objects, self.scheduler, self.pool, self.activity)
        self.actors = Actors(self.objects, self.scheduler, self.pool, self.activity)
        self._recovery = Recovery(self.objects, stored, self.tasks, self.actors)
        self.is_closed = self._has_ended = False
        self._dropped: deque[bytes] = deque()
        stored.store.before_create = self._free_dropped
        with self.loop.lock:
            self.hosts = MeshHosts(self, mesh) if mesh else LocalHosts(self, resources)
        self._summary = SummaryWriter(self, self.hosts.write_summary)
        with self.loop.lock:
            Shortage(self.loop, self.actors, self.tasks).watch()
        self.loop.start()
        self._summary.start()

    def close(self) -> None:
        """End all processes; what is pending raises ContextClosedError."""
        try:
            self._close()
        finally:
            DEFERRAL.restore_handlers()

    def _close(self) -> None:
        with self.loop.lock:
            if self._has_ended:
                return
            self._has_ended = True
            self._end(ContextClosedError())
        self._summary.stop()
        if isinstance(self.hosts, MeshHosts):
            # The loop handles their last reports.
            self.hosts.close()
            self.loop.close()
        else:
            self.loop.close()
            self.hosts.close()
        self.stored.close()

    def check_open(self) -> None:
        """Raise ContextClosedError if the context is closed."""
        if self.is_closed:
            raise ContextClosedError

    def drop(self, ref: bytes) -> None:
        """Note that the driver has one reference less. Takes no lock."""
        self._dropped.append(ref)
        if len(self._dropped) % _DROPS_AT_ONCE == 0 and not self.is_closed:
            self.loop.wake()

    def submit(self, call: Call, executor: Executor | None) -> None:
        """Take a call of the driver, or of a task in an executor, which holds its result."""
        self.check_open()
        if call.actor:
            self.objects.check([call.actor])
            self.actors.submit(call, executor.number if executor else DRIVER)
        else:
            self.tasks.submit(call)
        self._hold(executor, call.id)
        self._drop_references()
        self._note_parent(call)
        # What follows running tasks is sent when one of them ends: many in one message.
        self.tasks.pump(ahead=False)

    def create_actor(self, new: NewActor, executor: Executor | None) -> bytes:
        """Take an actor, or find it by its name; return its id."""
        self.check_open()
        self._drop_references()  # the last handle of an actor may be among them
        actor = self.actors.create(new)
        self._hold(executor, actor)
        self._settle()
        return actor

    def find_actor(self, name: str, executor: Executor | None) -> bytes:
        """Find an actor by its name; return its id."""
        self.check_open()
        self._drop_references()
        actor = self.actors.find(name)
        self._hold(executor, actor)
        return actor

    def put(self, ref: bytes, payload: Payload, executor: Executor | None) -> None:
        """Take an object."""
        self.check_open()
        self.objects.check(payload.refs)
        self.objects.add(ref)
        host = executor.host if executor else self.stored.home
        self.objects.settle(ref, payload, host, "put")
        self._hold(executor, ref)
        self._drop_references()

    def _note_parent(self, call: Call) -> None:
        """Let the cancel of a call reach those that it makes."""
        parent = self._find_call(call.parent) if call.parent else None
        child = self._find_call(call.id) if parent else None
        if parent is not None and child is not None:
            parent.add_child(child)
            if parent.is_cancelled_with_children:
                self._cancel(call.id, recursive=True)

    def cancel(self, ref: bytes, *, recursive: bool) -> None:
        """Cancel a call that has not ended; with `recursive`, also those that it has made."""
        self.check_open()
        self._cancel(ref, recursive=recursive)
        self._settle()

    def _cancel(self, ref: bytes, *, recursive: bool) -> None:
        refs = [ref]
        while refs:
            ref = refs.pop()
            if recursive and (pending := self._find_call(ref)):
                pending.is_cancelled_with_children = True
                refs += pending.children
            _ = self.tasks.cancel(ref) or self.actors.cancel(ref)

    def _find_call(self, ref: bytes) -> PendingCall | None:
        """Return a task, or an actor's call, that has not ended."""
        return self.tasks.find(ref) or self.actors.find_call(ref)

    def await_objects(
        self, ids: list[bytes], count: int, timeout: float | None, *, values: bool
    ) -> Waiter:
        """Let this thread wait, without the lock, for the objects or the time-out."""
        is_done = threading.Lock()
        with self.loop.lock:
            self._drop_references()
            waiter = Waiter(self.objects, ids, count, values=values, on_done=is_done.release)
            if waiter.is_done:
                return waiter
            is_done.acquire()
        try:
            is_done.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))
        finally:
            # Else the loop has stopped it: no lock, for which this thread would wait again.
            if not waiter.is_done:
                with self.loop.lock:
                    waiter.stop()
        return waiter

    def find_executor(self, number: int) -> Executor | None:
        """Return an executor that has not ended."""
        return self.pool.find(number)

    def pause(self, executor: Executor, *, waits: bool) -> None:
        """Give back the CPU of a call that waits; let what waits behind it run elsewhere."""
        executor.waiting += 1 if waits else -1
        if executor.allocation is None:
            return
        self.scheduler.pause(executor.allocation, paused=executor.waiting > 0)
        if waits and not executor.actor and len(executor.calls) > 1:
            executor.request(Recall(_MOST_RECALLED))

    def on_message(self, executor: Executor, message: Done | Returned | Held | Started) -> None:
        """Handle a message of an executor."""
        if isinstance(message, Held):
            self._change_held(executor, message)
        elif isinstance(message, Returned):
            self.tasks.on_returned(executor, message.ids)
        elif isinstance(message, Started):
            executor.pid = message.pid
        elif executor.actor:
            self.actors.on_done(executor, message)
        else:
            self.tasks.on_done(executor, message)

    def on_executor_ended(self, executor: Executor, ended: str) -> None:
        """Handle the end of an executor."""
        if executor.actor:
            self.actors.on_ended(executor, ended)
        else:
            self.tasks.on_ended(executor, ended)
        held, executor.held = executor.held, Counter()
        for ref in held.elements():
            self.objects.drop(ref)
        self.stored.executor_ended(executor.host, executor.number)

    def _end(self, reason: ContextError) -> None:
        """Take nothing more; let what is pending raise the reason."""
        self.is_closed = True
        for ref in self.objects.pending():
            self.objects.settle(ref, error_payload(reason))

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, ContextError):
            error = ContextError(f"The task context failed: {error!r}. Please report this.")
        self._end(error)

    def on_host_lost(self, name: str, reason: str) -> None:
        """Start the tasks of a lost host elsewhere; its actors have died."""
        log.warning("The host %s is lost: %s.", name, reason)
        self.scheduler.remove_host(name)
        self.pool.remove_host(name, f"was lost with its host ({reason})")
        self._recovery.recover(name)
        self.tasks.fail_infeasible()
        self.actors.fail_infeasible()
        self._settle()

    def _change_held(self, executor: Executor, change: Held) -> None:
        for ref in change.kept:
            if ref in self.objects:
                executor.held[ref] += 1
                self.objects.keep(ref)
        for ref in change.dropped:
            count = executor.held.pop(ref, 0)
            if count > 1:
                executor.held[ref] = count - 1
            if count:
                self.objects.drop(ref)

    def _hold(self, executor: Executor | None, ref: bytes) -> None:
        """Let an executor hold a reference that was counted for it."""
        if executor is None:
            return
        if self.pool.find(executor.number) is None:
            self.objects.drop(ref)
        else:
            executor.held[ref] += 1

    def _free_dropped(self) -> None:
        """Free what the driver has dropped. Called without the lock."""
        if self._dropped:
            with self.loop.lock:
                self._drop_references()

    def _drop_references(self) -> None:
        while self._dropped:
            self.objects.drop(self._dropped.popleft())

    def _settle(self) -> None:
        """Start whatever can start after a change."""
        self._drop_references()
        self.actors.pump()
        self.tasks.pump()
