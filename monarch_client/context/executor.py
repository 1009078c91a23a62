"""A process that runs calls, one after the other: tasks, or the methods of one actor.

The main thread reads calls and runs them, so that a signal interrupts the user's code. A second
thread reads requests about calls: to give back those that have not started, and to end one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn

from monarch_client.context.calls import ALL, CONSTRUCTOR, FUNCTION
from monarch_client.context.code_cache import CodeCache
from monarch_client.context.current import set_job_context
from monarch_client.context.errors import PackagesError, TaskCancelledError
from monarch_client.context.packages import requested_packages, use_packages
from monarch_client.context.refs import set_process_home
from monarch_client.context.streams import begin_call, flush_streams, label_lines
from monarch_client.context.task_context import TaskContext
from monarch_client.context.values import (
    ERROR,
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
        self._loop: asyncio.AbstractEventLoop | None = None
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
        if self._pool is not None:
            self._pool.submit(self._perform, run, code)
        else:
            self._perform(run, code)

    def _perform(self, run: Run, code: Code | None) -> None:
        begin_call(run.name)
        self._context.largest_inline = run.inline_limit
        started = time.perf_counter_ns()
        payload = self._result_of(run, code)
        if os.getpid() != self._pid:
            end_fork(None)
        done = Done(run.id, payload, time.perf_counter_ns() - started)
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
                flush_streams()
        except BaseException as error:  # noqa: BLE001 - whatever a user's call raises is its result
            if os.getpid() != self._pid:
                end_fork(error)
            if run.id in self._cancelled and isinstance(error, KeyboardInterrupt):
                return cancelled(run.name)
            where = f"{run.name} in process {os.getpid()} on {socket.gethostname()}"
            return self._kept(to_error(error, where))

    def _call(self, run: Run, code: Code | None) -> Payload:
        found = zip(run.needs, run.values, strict=True)
        values = dict(zip(run.places, found, strict=True))
        stored = values.pop(FUNCTION, None)
        args, kwargs = self._context.read(*values.pop(ALL, (b"", run.args)))
        for place, (ref, value) in values.items():
            if value.kind == ERROR:
                return self._kept(value)
            target = args if isinstance(place, int) else kwargs
            target[place] = self._context.read(ref, value)
        if run.method == CONSTRUCTOR and code is not None:
            self._instance = code.function(self._context, stored)(*args, **kwargs)
            if run.max_concurrency > 1:
                self._allow_concurrent_calls(run.max_concurrency)
            return to_payload(None, self._context)
        if code is not None:
            result = code.function(self._context, stored)(*args, **kwargs)
        else:
            result = getattr(self._instance, run.method)(*args, **kwargs)
        result = self._awaited(result) if inspect.iscoroutine(result) else result
        return self._kept(to_payload(result, self._context))

    def _kept(self, payload: Payload) -> Payload:
        """Keep the references in a result until it is sent: other calls report drops, too."""
        for ref in payload.refs:
            self._context.keep(ref)
        return payload

    def _awaited(self, coroutine: Any) -> Any:
        """Run a coroutine on the actor's event loop, which all its calls share."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        if self._pool is None:
            return self._loop.run_until_complete(coroutine)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _allow_concurrent_calls(self, count: int) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="loop").start()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="call")

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
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _on_interrupt(self, *_: object) -> None:
        """Interrupt the call that was meant: another one may have begun since."""
        if self._running in self._cancelled:
            raise KeyboardInterrupt


def end_fork(error: BaseException | None) -> NoReturn:
    """End a process that a call has forked, as Python would: the call's result is its parent's."""
    status = 0
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        status = error.code or 0
    elif isinstance(error, SystemExit):
        sys.stderr.write(f"{error.code}\n")
        status = 1
    elif error is not None:
        traceback.print_exception(error)
        status = 1
    flush_streams()
    os._exit(status & 0xFF)


def cancelled(name: str) -> Payload:
    """Return the result of a call that was cancelled."""
    return error_payload(TaskCancelledError(f"{name} was cancelled."))


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
