"""The tasks of a context, from their submission to their end."""

from __future__ import annotations

from collections.abc import Iterator

from monarch_client.context.driver.activity import Activity
from monarch_client.context.driver.executors import Executor, ExecutorPool
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.pending_call import PendingCall
from monarch_client.context.errors import TaskCancelledError, TaskLostError
from monarch_client.context.hosting.loop import Loop
from monarch_client.context.scheduling import Assignment, Item, Scheduler
from monarch_client.context.values import Payload, error_payload
from monarch_client.context.wire import Call, Done, Interrupt, Recall

# From SIGINT until the process of a cancelled task is killed.
GRACE_S = 2.0


class Task:
    """A task that has not ended."""

    __slots__ = ("executor", "item", "losses", "pending")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.pending: PendingCall
        self.executor: Executor | None = None
        # How often its process died while it ran, or its result was lost.
        self.losses = 0


class Tasks:
    """All tasks that have not ended."""

    def __init__(
        self,
        loop: Loop,
        objects: ObjectTable,
        scheduler: Scheduler,
        pool: ExecutorPool,
        activity: Activity,
    ) -> None:
        self._loop = loop
        self._objects = objects
        self._scheduler = scheduler
        self._pool = pool
        self._activity = activity
        self._tasks: dict[bytes, Task] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def submit(self, call: Call) -> None:
        """Take a task. InfeasibleError, ObjectLostError: it can never run."""
        self._scheduler.check(tuple(call.shape))
        task = self._task(call)
        self._objects.add(call.id)
        self._tasks[call.id] = task
        self._activity.submitted(call.name, call.function)
        task.pending.await_arguments()

    def submit_again(self, call: Call, losses: int) -> None:
        """Take a task whose result, which is pending again, was lost so often."""
        if error := self._scheduler.refusal(tuple(call.shape)):
            self._objects.settle(call.id, error_payload(error))
            return
        task = self._tasks[call.id] = self._task(call)
        task.losses = losses
        self._activity.submitted(call.name, call.function)
        task.pending.await_arguments()

    def has(self, ref: bytes) -> bool:
        """Whether the object is the result of a task that has not ended."""
        return ref in self._tasks

    def find(self, ref: bytes) -> PendingCall | None:
        """Return the call of a task that has not ended."""
        task = self._tasks.get(ref)
        return task.pending if task else None

    def await_again(self) -> None:
        """Let tasks that were not sent wait for arguments which were lost since they were ready."""
        for task in list(self._tasks.values()):
            if task.executor is None:
                self._await_lost(task)

    def _await_lost(self, task: Task) -> None:
        if not task.pending.has_arguments:
            self._scheduler.withdraw(task.item.id)
            task.pending.await_arguments()

    def _task(self, call: Call) -> Task:
        solo = bool(call.max_calls or call.packages)
        task = Task(Item(call.id, tuple(call.shape), kind=call.digest, solo=solo))
        task.pending = PendingCall(call, self._objects, self._on_arguments)
        return task

    def pump(self, *, ahead: bool = True) -> None:
        """Start the tasks that fit now; with `ahead`, send others to follow short ones."""
        for assignment in self._scheduler.assign(ahead=ahead):
            self._send(assignment)
        while recalled := self._scheduler.recall():
            allocation, count = recalled
            for executor in self._executors_of(allocation.items):
                executor.request(Recall(count))

    def cancel(self, ref: bytes) -> bool:
        """End a task. Whether it was one that has not ended."""
        task = self._tasks.get(ref)
        if task is None:
            return False
        executor = task.executor
        task.pending.is_cancelled = True
        if executor is not None:
            self._objects.settle(ref, _cancelled(task))
            executor.request(Interrupt(ref))
            self._loop.call_later(GRACE_S, lambda: self._kill_if_running(ref, executor))
        else:
            self._scheduler.withdraw(ref)
            self._end(task, _cancelled(task))
        return True

    def on_done(self, executor: Executor, done: Done) -> None:
        """End a task that an executor has run."""
        task = self._tasks.get(done.id)
        if executor.calls.pop(done.id, self) is self or task is None:
            return
        self._finish(executor, task, done.ran_ns or None)
        if not task.pending.is_cancelled:
            call = task.pending.call
            self._activity.ran(call.name, done.payload, done.ran_ns, executor.host, call.function)
        self._end(task, done.payload, executor.host, has_run=True)

    def on_returned(self, executor: Executor, calls: list[bytes]) -> None:
        """Enqueue tasks again that an executor has given back."""
        for call in calls:
            executor.calls.pop(call, None)
            if task := self._tasks.get(call):
                task.executor = None
        allocation = executor.allocation
        if allocation is not None and self._scheduler.returned(allocation, calls):
            self._pool.release(executor)
        for call in calls:
            task = self._tasks.get(call)
            if task is not None and task.pending.is_cancelled:
                self._scheduler.withdraw(call)
                self._end(task, _cancelled(task))
            elif task is not None:
                self._await_lost(task)

    def on_ended(self, executor: Executor, ended: str) -> None:
        """Retry the task that ran in an executor that has ended, and start the others again."""
        calls, executor.calls = list(executor.calls), {}
        host = executor.allocation.host if executor.allocation else ""
        for position, call in enumerate(calls):
            task = self._tasks[call]
            self._forget_executor(executor, task)
            ran = position == 0
            task.losses += ran
            if task.pending.is_cancelled:
                self._end(task, _cancelled(task))
            elif ran and task.losses > task.pending.call.max_retries:
                self._end(task, _lost(task, host, ended), host=host)
            else:
                self._scheduler.enqueue(task.item)
                self._await_lost(task)

    def starved_texts(self) -> dict[object, str]:
        """Describe the tasks that wait for resources which actors have, by their shapes."""
        return {
            item.shape: f"The task {self._tasks[item.id].pending.call.name} waits for"
            f" {self._scheduler.shortage(item.shape)}. Actors have what it needs, until they end."
            for item in self._scheduler.starved()
        }

    def running(self) -> Iterator[str]:
        """Yield the names, as counted, of the tasks that run: the first call of each executor."""
        for executor in self._pool.busy():
            task = self._tasks.get(next(iter(executor.calls)))
            if task is not None:
                call = task.pending.call
                yield self._activity.counted_as(call.name, call.function)

    def fail_infeasible(self) -> None:
        """End the tasks that no host can fit any more: one was lost."""
        for task in list(self._tasks.values()):
            error = self._scheduler.refusal(task.item.shape) if task.executor is None else None
            if error:
                self._scheduler.withdraw(task.item.id)
                self._end(task, error_payload(error))

    def _on_arguments(self, pending: PendingCall) -> None:
        task = self._tasks[pending.call.id]
        if pending.failure is not None:
            self._end(task, pending.failure)
        else:
            if pending.call.needs:
                task.item.near = self._objects.bytes_by_host(pending.call.needs)
            self._scheduler.enqueue(task.item)

    def _send(self, assignment: Assignment) -> None:
        allocation = assignment.allocation
        if assignment.is_new:
            call = self._tasks[assignment.items[0].id].pending.call
            fresh = call.max_calls == 1
            executor = self._pool.acquire(allocation, call.packages, fresh=fresh)
        else:
            executor = next(iter(self._executors_of(allocation.items)))
        frames = []
        for item in assignment.items:
            task = self._tasks[item.id]
            task.executor = executor
            executor.calls[item.id] = None
            frames.append(task.pending.message(executor))
        executor.send(b"".join(frames))

    def _executors_of(self, calls: dict[bytes, Item]) -> list[Executor]:
        found = (self._tasks[call].executor for call in calls)
        return list({each: None for each in found if each is not None})

    def _finish(self, executor: Executor, task: Task, ran_ns: int | None) -> None:
        """Give back what the task took; keep its process for others."""
        task.executor = None
        executor.served += 1
        allocation = executor.allocation
        if allocation is not None and self._scheduler.finish(allocation, task.item.id, ran_ns):
            limit = task.pending.call.max_calls
            self._pool.release(executor, retire=bool(limit and executor.served >= limit))

    def _forget_executor(self, executor: Executor, task: Task) -> None:
        task.executor = None
        allocation = executor.allocation
        if allocation is not None and self._scheduler.finish(allocation, task.item.id):
            executor.allocation = None

    def _end(self, task: Task, payload: Payload, host: str = "", *, has_run: bool = False) -> None:
        call = task.pending.call
        if task.pending.is_cancelled:
            self._activity.cancelled(call.name, call.function)
        elif not has_run:
            self._activity.failed(call.name, payload, host, call.function)
        del self._tasks[call.id]
        self._objects.keep_call(call, payload, host, task.losses)
        self._objects.settle(call.id, payload, host, call.name)
        task.pending.release()

    def _kill_if_running(self, ref: bytes, executor: Executor) -> None:
        """Kill the process of a cancelled task that still runs; recall one that only follows."""
        if ref not in executor.calls:
            return
        if next(iter(executor.calls)) == ref:
            executor.kill()
        else:
            executor.request(Recall(len(executor.calls)))
            self._loop.call_later(GRACE_S, lambda: self._kill_if_running(ref, executor))


def _cancelled(task: Task) -> Payload:
    return error_payload(TaskCancelledError(f"{task.pending.call.name} was cancelled."))


def _lost(task: Task, host: str, ended: str) -> Payload:
    times = f", on each of {task.losses} tries" if task.losses > 1 else ""
    name = task.pending.call.name
    return error_payload(TaskLostError(f"The process of {name} on {host} {ended}{times}."))
