"""A process that runs calls, one after the other: tasks, or the methods of one actor.

The main thread reads calls and runs them, so that a signal interrupts the user's code; those of an
async actor all run on its event loop. A second thread reads requests about calls: to give back
those that have not started, and to end one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import select
import signal
import socket
import threading
import time
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from monarch_client.context.calls import ALL, CONSTRUCTOR, FUNCTION
from monarch_client.context.code_cache import CodeCache
from monarch_client.context.current import set_job_context
from monarch_client.context.errors import PackagesError, TaskCancelledError
from monarch_client.context.event_loop import EventLoop, Outcome, has_async_methods
from monarch_client.context.packages import requested_packages, use_packages
from monarch_client.context.process_ends import end_actor, end_fork
from monarch_client.context.refs import set_process_home
from monarch_client.context.running_call import begin_call
from monarch_client.context.streams import flush_streams, label_lines
from monarch_client.context.task_context import TaskContext
from monarch_client.context.values import (
    Payload,
    error_payload,
    to_error,
    to_payload,
    unpickled,
)
from monarch_client.context.wire import (
    TO_CONTROL,
    TO_EXECUTOR,
    Done,
    FrameReader,
    Held,
    Interrupt,
    Recall,
    Returned,
    Run,
    Started,
    frame,
)

# Cancelled calls that are remembered: some have ended before the request arrived.
_MOST_CANCELLED = 1000
# From the first reference that a call drops to the report of it and of those that follow.
_REPORT_AFTER_S = 0.02
# What the end of a cancelled call looks like.
_INTERRUPTS = (KeyboardInterrupt, asyncio.CancelledError)


class Code:
    """A function as bytes; unpickled by the first call, which gets the errors of that."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._function: Any = None

    def function(self, context: TaskContext, stored: tuple[bytes, Payload] | None) -> Any:
        """Return the function. `stored`: its bytes, if they are an object of the store."""
        if self._function is None:
            data = context.read(*stored) if stored else self._data
            self._function = unpickled(data, context)
            self._data = b""
        return self._function


class Executor:
    """The loop of one process."""

    def __init__(self, context: TaskContext, tasks: socket.socket, control: socket.socket) -> None:
        self._tasks = tasks
        self._control = control
        self._context = context
        self._reader: FrameReader[Run] = FrameReader(tasks, TO_EXECUTOR)
        self._codes: CodeCache[Code] = CodeCache()
        self._waiting: deque[tuple[Run, Code | None]] = deque()
        self._write = threading.Lock()
        # For the one that reads calls: the main thread when it has none, else the control thread.
        self._reading = threading.Lock()
        # That of the executor: a call may fork, and its child leave the call as well.
        self._pid = os.getpid()
        self._running = b""
        self._cancelled: dict[bytes, None] = {}
        self._instance: Any = None
        self._pool: ThreadPoolExecutor | None = None
        self._event_loop: EventLoop | None = None
        self._making = threading.Lock()
        # Of an async actor: how many of its calls may begin.
        self._slots: asyncio.Semaphore | None = None
        # Where each task begins, wherever the one before has gone.
        self._folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        # Written to after the first reference that was dropped since the last report.
        self._drops = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._has_drops = False
        context.on_drop = self._on_drop

    def run(self) -> None:
        """Run calls until the driver closes the socket; then end this process."""
        packages = requested_packages(os.environ)
        signal.signal(signal.SIGINT, self._on_interrupt)
        set_process_home(self._context)
        set_job_context(self._context)
        label_lines()
        threading.Thread(target=self._serve_control, daemon=True, name="control").start()
        with suppress(EOFError, ConnectionError):
            self._tasks.sendall(frame(Started(self._pid)))
            if packages:
                self._use_packages(packages)
            while True:
                self._start(*self._next())
        os._exit(0)

    def _use_packages(self, packages: list[str]) -> None:
        """Install the packages of this process's calls; if that fails, so do all calls."""
        try:
            use_packages(packages)
        except PackagesError as error:
            failure = error_payload(error)
            while True:
                run, _ = self._next()
                with self._write:
                    self._tasks.sendall(frame(Done(run.id, failure, 0)))

    def _next(self) -> tuple[Run, Code | None]:
        while True:
            with suppress(IndexError):  # the control thread takes calls, too
                return self._waiting.popleft()
            with self._reading:
                # While this thread waited for the lock, the other one may have read calls.
                if not self._waiting:
                    self._receive()

    def _receive(self) -> None:
        for run in self._reader.read():
            self._waiting.append((run, self._code_of(run)))

    def _code_of(self, run: Run) -> Code | None:
        """Return the function of a call, as the driver's cache expects: in order of arrival."""
        if not run.digest:
            return None
        code = self._codes.find(run.digest)
        if code is None:
            code = Code(run.code)
            self._codes.add(run.digest, code, run.code_bytes)
        return code

    def _start(self, run: Run, code: Code | None) -> None:
        if self._slots is not None:
            self._start_on_loop(run, self._slots)
        elif self._pool is not None:
            self._pool.submit(self._perform, run, code)
        else:
            self._perform(run, code)

    def _perform(self, run: Run, code: Code | None) -> None:
        begin_call(run.id, run.name)
        self._context.largest_inline = run.inline_limit
        started = time.perf_counter_ns()
        self._report(run, self._result_of(run, code), started)

    def _start_on_loop(self, run: Run, slots: asyncio.Semaphore) -> None:
        """Start a call of an async actor."""
        self._context.largest_inline = run.inline_limit
        started = 0

        async def call() -> Payload:
            nonlocal started
            async with slots:
                if run.id in self._cancelled:
                    return cancelled(run.name)
                begin_call(run.id, run.name)
                started = time.perf_counter_ns()
                method, args, kwargs = self._resolved(run, None)
                result = method(*args, **kwargs)
                return self._sendable(run, await result if inspect.iscoroutine(result) else result)

        def end(outcome: Outcome) -> None:
            payload, error = outcome
            flush_streams()
            self._report(run, self._failed(run, error) if error else payload, started)

        self._loop.start(run.id, call(), end)

    def _report(self, run: Run, payload: Payload, started: int) -> None:
        """Send the result of a call that started then; 0: it never did."""
        if os.getpid() != self._pid:
            end_fork(None)
        done = Done(run.id, payload, time.perf_counter_ns() - started if started else 0)
        with self._write:
            # The driver keeps the arguments until the call is done, and the result from then on.
            held = self._context.changes()
            before = frame(Held(held.kept, [])) if held.kept else b""
            after = frame(Held([], held.dropped)) if held.dropped else b""
            self._tasks.sendall(before + frame(done) + after)
        for ref in payload.refs:
            self._context.drop(ref)

    def _result_of(self, run: Run, code: Code | None) -> Payload:
        """Run a call with its environment variables, and return its result or error as a payload.

        Those of an actor's constructor stay for its methods.
        """
        before = {name: os.environ.get(name) for name in run.env}
        is_main = self._pool is None
        try:
            try:
                if is_main:
                    self._running = run.id
                if run.id in self._cancelled:
                    return cancelled(run.name)
                os.environ.update(run.env)
                return self._call(run, code)
            finally:
                if is_main:
                    self._running = b""
                if run.method != CONSTRUCTOR:
                    _restore(before)
                if not run.method:
                    with suppress(OSError):
                        os.fchdir(self._folder)
                flush_streams()
        except BaseException as error:  # noqa: BLE001 - whatever a user's call raises is its result
            return self._failed(run, error)

    def _failed(self, run: Run, error: BaseException) -> Payload:
        """Return the result of a call that has raised an error; an exit ends an actor."""
        if os.getpid() != self._pid:
            end_fork(error)
        if run.id in self._cancelled and isinstance(error, _INTERRUPTS):
            return cancelled(run.name)
        if isinstance(error, SystemExit) and run.method:
            end_actor(error, self._write)
        where = f"{run.name} in process {os.getpid()} on {socket.gethostname()}"
        return self._kept(to_error(error, where))

    def _call(self, run: Run, code: Code | None) -> Payload:
        function, args, kwargs = self._resolved(run, code)
        if run.method == CONSTRUCTOR:
            self._construct(run, function, args, kwargs)
            return to_payload(None, self._context)
        result = function(*args, **kwargs)
        if inspect.iscoroutine(result):
            result = self._loop.result(run.id, result)
        return self._sendable(run, result)

    def _resolved(self, run: Run, code: Code | None) -> tuple[Any, list[Any], dict[str, Any]]:
        """Return the function or method of a call, and its arguments."""
        found = zip(run.needs, run.values, strict=True)
        values = dict(zip(run.places, found, strict=True))
        stored = values.pop(FUNCTION, None)
        args, kwargs = self._context.read(*values.pop(ALL, (b"", run.args)))
        for place, (ref, value) in values.items():
            target = args if isinstance(place, int) else kwargs
            target[place] = self._context.read(ref, value)
        if code is not None:
            return code.function(self._context, stored), args, kwargs
        return getattr(self._instance, run.method), args, kwargs

    def _construct(self, run: Run, klass: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Make the object of an actor, and what its calls run on."""

        async def construct() -> Any:
            return klass(*args, **kwargs)

        if has_async_methods(klass):
            # On the loop: it may start coroutines there.
            self._instance = self._loop.result(run.id, construct())
        else:
            self._instance = klass(*args, **kwargs)
        if has_async_methods(type(self._instance)):
            self._slots = asyncio.Semaphore(run.max_concurrency)
        elif run.max_concurrency > 1:
            self._pool = ThreadPoolExecutor(run.max_concurrency, thread_name_prefix="call")

    def _sendable(self, run: Run, result: object) -> Payload:
        """Return the payload of a result."""
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise TypeError(
                f"{run.name} returned a generator, which cannot leave its process. Return a list,"
                " or a list of references that get_job_context().put returns."
            )
        return self._kept(to_payload(result, self._context))

    def _kept(self, payload: Payload) -> Payload:
        """Keep the references in a result until it is sent: other calls report drops, too."""
        for ref in payload.refs:
            self._context.keep(ref)
        return payload

    @property
    def _loop(self) -> EventLoop:
        """The event loop that all coroutines of this process share."""
        with self._making:
            if self._event_loop is None:
                self._event_loop = EventLoop(self._on_stray_exit)
            return self._event_loop

    def _on_stray_exit(self, error: SystemExit) -> None:
        """Handle an exit of a coroutine that a call has left running."""
        if self._instance is not None:
            end_actor(error, self._write)
        traceback.print_exception(error)

    def _serve_control(self) -> None:
        reader: FrameReader[Recall | Interrupt] = FrameReader(self._control, TO_CONTROL)
        pause: float | None = None
        with suppress(EOFError, ConnectionError):
            while True:
                sources: list[socket.socket | int] = [self._control, self._drops]
                ready = select.select(sources, [], [], pause)[0]
                if self._control in ready:
                    for message in reader.read():
                        self._handle(message)
                if self._drops in ready:
                    os.eventfd_read(self._drops)
                    pause = _REPORT_AFTER_S
                elif not ready:
                    self._report_drops()
                    pause = None

    def _handle(self, message: Recall | Interrupt) -> None:
        if isinstance(message, Recall):
            self._give_back(message.count)
        else:
            self._interrupt(message.id)

    def _on_drop(self) -> None:
        """Let the control thread report soon: the call may run for long."""
        if not self._has_drops:
            self._has_drops = True
            os.eventfd_write(self._drops, 1)

    def _report_drops(self) -> None:
        self._has_drops = False
        with self._write:
            held = self._context.changes()
            if held.kept or held.dropped:
                self._tasks.sendall(frame(held))

    def _receive_all(self) -> None:
        """Read the calls that have arrived while the main thread runs one."""
        # If the main thread has the lock, it is idle and runs them itself.
        if self._reading.acquire(blocking=False):
            try:
                while select.select([self._tasks], [], [], 0)[0]:
                    self._receive()
            finally:
                self._reading.release()

    def _give_back(self, count: int) -> None:
        self._receive_all()
        given: list[bytes] = []
        with suppress(IndexError):
            while len(given) < count:
                given.append(self._waiting.pop()[0].id)
        with self._write:
            self._tasks.sendall(frame(Returned(given)))

    def _interrupt(self, call: bytes) -> None:
        """Interrupt a call that runs; one that has not started will not run."""
        if len(self._cancelled) >= _MOST_CANCELLED:
            del self._cancelled[next(iter(self._cancelled))]
        self._cancelled[call] = None
        if self._event_loop is None or not self._event_loop.cancel(call):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _on_interrupt(self, *_: object) -> None:
        """Interrupt the call that was meant: another one may have begun since."""
        if self._running in self._cancelled:
            raise KeyboardInterrupt


def cancelled(name: str) -> Payload:
    """Return the result of a call that was cancelled."""
    return error_payload(TaskCancelledError(f"{name} was cancelled."))


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
