"""Forks, descriptors that run out, and unusual programs, which a context survives."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monarch_client.context import JobContext, TaskOptions, get_job_context
from monarch_client.context.errors import ContextError, TaskError
from monarch_client.context.hosting import local_host

LARGE = 100_000


class Store:
    """An actor that uses the driver and the object store of its host."""

    def pid(self) -> int:
        return os.getpid()

    def put(self) -> int:
        context = get_job_context()
        return len(context.get(context.put(bytes(LARGE))))


class Prints:
    """An actor whose output can be closed."""

    def close(self) -> None:
        sys.stdout.close()

    def say(self) -> int:
        sys.stdout.write("said\n")
        return sys.stdout.fileno()


def status_of_fork(calls: list[Callable[[], Any]]) -> int:
    """Return how many of the calls did not raise ContextError in a fork of this process."""
    pid = os.fork()
    if pid == 0:
        wrong = 0
        try:
            for call in calls:
                wrong += 1
                try:
                    call()
                except ContextError as error:
                    wrong -= "use it in the process that made it" in str(error)
        finally:
            os._exit(wrong)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_of_the_driver_cannot_use_its_context(context: JobContext) -> None:
    large = context.put(bytes([7]) * LARGE)
    handle = context.create_actor(Store)
    calls: list[Callable[[], Any]] = [
        lambda: context.put(bytes(LARGE)),
        lambda: context.put(1),
        lambda: context.get(large),
        lambda: context.wait([large]),
        lambda: context.create_task(int),
        lambda: context.create_actor(Store),
        lambda: context.cancel(large),
        handle.pid,
    ]
    with context._driver.loop.lock:  # another thread may have it when a program forks
        assert status_of_fork(calls) == 0
    assert context.get(large) == bytes([7]) * LARGE


@pytest.mark.slow
def test_a_context_waits_for_descriptors_that_have_run_out(context: JobContext) -> None:
    handle = context.create_actor(Store)
    context.get(handle.pid())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        connects = handle.put()
        forked = context.create_task(os.getpid, options=TaskOptions(max_calls=1))
        assert context.wait([connects, forked], timeout=0.15)[0] == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert context.get(connects, timeout=60) == LARGE
    assert context.get(forked, timeout=60) != os.getpid()


@pytest.mark.slow
def test_a_program_may_have_many_arguments_and_any_bytes_in_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments = ["program", "\udcff", *map(str, range(20_000))]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    with JobContext(resources={"CPU": 1}) as context:
        found, last = context.get(
            context.create_task(lambda: (len(sys.argv), ascii(sys.argv[1]))), timeout=60
        )
        assert (found, last) == (len(arguments), ascii("\udcff"))
        assert context.get(context.create_task(lambda: sys.path[-1])) == str(tmp_path)


@pytest.mark.slow
def test_a_zygote_that_never_starts_fails_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_host, "_START", "raise SystemExit(3)")
    failure = pytest.raises(ContextError, match="failed 3 times while it started, with status 3")
    with JobContext(resources={"CPU": 1}) as context, failure:
        context.get(context.create_task(int), timeout=60)


def test_a_fork_of_a_task_ends_by_itself(context: JobContext) -> None:
    def forks(leave):
        pid = os.fork()
        if pid == 0:
            return leave()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    leaves = [lambda: sys.exit(3), lambda: 1 / 0, lambda: None]
    refs = [context.create_task(forks, (leave,)) for leave in leaves]
    assert context.get(refs, timeout=60) == [3, 1, 0]


def test_output_that_one_call_has_closed_is_open_for_the_next(context: JobContext) -> None:
    handle = context.create_actor(Prints)
    context.get(handle.close())
    assert context.get(handle.say(), timeout=60) == 1


def test_an_error_whose_module_the_driver_lacks_keeps_its_text(context: JobContext) -> None:
    def fail():
        import sys
        import types

        error = type("OddError", (Exception,), {"__module__": "only_there"})
        sys.modules["only_there"] = types.ModuleType("only_there")
        sys.modules["only_there"].OddError = error
        raise error("the text")

    with pytest.raises(TaskError, match=r"OddError: the text") as caught:
        context.get(context.create_task(fail), timeout=60)
    assert "cannot be unpickled here: ModuleNotFoundError" in str(caught.value.__cause__)
    assert "in fail" in str(caught.value.__cause__)


def test_one_call_for_each_process_never_reuses_one(context: JobContext) -> None:
    used = {context.get(context.create_task(os.getpid)) for _ in range(5)}
    fresh = TaskOptions(max_calls=1)
    assert context.get(context.create_task(os.getpid, options=fresh)) not in used
