"""The processes of a GPU: the next one starts when the memory of the former one is free."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import Mock

from monarch_client.context.driver.executors import Executor, ExecutorPool, HostExecutors
from monarch_client.context.scheduling import Allocation

WHOLE, HALF = (("GPU", 10_000),), (("GPU", 5_000),)


class Link:
    """A host that keeps the operations of the driver."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []

    def fork(self, executor: int, env: Mapping[str, str]) -> None:
        self.done.append(("fork", executor))

    def send(self, executor: int, data: bytes) -> None:
        self.done.append(("send", executor))

    def end(self, executor: int) -> None:
        self.done.append(("end", executor))

    def kill(self, executor: int) -> None:
        self.done.append(("kill", executor))

    def take(self) -> list[tuple[str, int]]:
        done, self.done = self.done, []
        return done


class Pool:
    """The executors of one host with two GPUs."""

    def __init__(self) -> None:
        self.link = Link()
        self.pool = ExecutorPool(Mock())
        self.pool.add_host(HostExecutors("a", ["0", "1"], 4, self.link))

    def run(
        self, *devices: int, shape: tuple[tuple[str, int], ...] = WHOLE, packages: str = ""
    ) -> Executor:
        executor = self.pool.acquire(Allocation("a", shape, devices), packages.split())
        executor.send(b"call")
        return executor

    def end(self, executor: Executor) -> None:
        self.pool.on_ended(executor.number, "exited")


def test_a_process_starts_when_the_former_one_of_its_gpu_has_ended() -> None:
    pool = Pool()
    former = pool.run(0)
    pool.pool.release(former)
    pool.link.take()
    pool.run(0, packages="numpy")
    assert pool.link.take() == [("end", 1)]
    pool.end(former)
    assert pool.link.take() == [("fork", 2), ("send", 2)]


def test_a_process_that_is_used_again_gets_calls_when_the_others_of_its_gpu_have_ended() -> None:
    pool = Pool()
    both = [pool.run(0, shape=HALF) for _ in range(2)]
    for each in both:
        pool.pool.release(each)
    pool.link.take()
    kept = pool.run(0)
    (former,) = {*both} - {kept}
    assert pool.link.take() == [("end", former.number)]
    pool.end(former)
    assert pool.link.take() == [("send", kept.number)]


def test_a_process_that_was_ended_before_is_awaited_by_the_next_of_its_gpu() -> None:
    pool = Pool()
    retired = pool.run(0)
    pool.pool.release(retired, retire=True)
    pool.link.take()
    pool.run(0)
    assert pool.link.take() == []
    pool.end(retired)
    assert pool.link.take() == [("fork", 2), ("send", 2)]


def test_processes_without_or_with_other_gpus_start_at_once() -> None:
    pool = Pool()
    retired = pool.run(0)
    pool.pool.release(retired, retire=True)
    pool.link.take()
    pool.run(1)
    pool.run()
    assert pool.link.take() == [("fork", 2), ("send", 2), ("fork", 3), ("send", 3)]


def test_a_process_that_is_killed_before_it_starts_is_reported_by_its_host() -> None:
    pool = Pool()
    retired = pool.run(0)
    pool.pool.release(retired, retire=True)
    pool.link.take()
    pool.run(0).kill()
    pool.end(retired)
    assert pool.link.take() == [("fork", 2), ("send", 2), ("kill", 2)]
