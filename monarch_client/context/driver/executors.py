"""The executors of the hosts: used by allocations, kept for the next ones."""

from __future__ import annotations

import logging
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from monarch_client.context.code_cache import CodeCache
from monarch_client.context.hosting.link import HostLink
from monarch_client.context.packages import variables_of
from monarch_client.context.wire import (
    FROM_EXECUTOR,
    Done,
    FrameBuffer,
    Held,
    Returned,
    Started,
    frame,
)

if TYPE_CHECKING:
    from monarch_client.context.scheduling import Allocation

log = logging.getLogger("monarch_client.context")
# What an executor has for its life: the numbers of its GPUs, and its packages.
Kind = tuple[tuple[int, ...], tuple[str, ...]]


class Events(Protocol):
    """The owner of a pool, as a receiver of its executors' reports."""

    def on_message(self, executor: Executor, message: Done | Returned | Held | Started) -> None:
        """Handle a message of an executor."""

    def on_executor_ended(self, executor: Executor, ended: str) -> None:
        """Handle that an executor `ended` so: of its calls nothing more is reported."""


class Executor:
    """One executor process, as the driver sees it."""

    def __init__(self, number: int, host: str, kind: Kind, link: HostLink) -> None:
        self.number = number
        self.host = host
        # Zero until the process has started.
        self.pid = 0
        self.kind = kind
        self.codes: CodeCache[bool] = CodeCache()
        self.allocation: Allocation | None = None
        self.actor = b""
        # The calls that it was sent and has not ended, in the order in which it runs them.
        self.calls: dict[bytes, None] = {}
        # How often each reference is counted for its process, which drops it as often: a drop that
        # is under way must not end what the process gets again, such as an actor by its name.
        self.held: Counter[bytes] = Counter()
        # How many of its threads wait for others.
        self.waiting = 0
        self.served = 0
        self.received: FrameBuffer[Done | Returned | Held | Started] = FrameBuffer(FROM_EXECUTOR)
        self.is_closing = False
        self._link = link
        # The executors that have its GPUs until their processes have ended; what waits for that.
        self._former: set[int] = set()
        self._waiting_for_gpus: list[Callable[[], None]] = []

    def start(self, env: Mapping[str, str]) -> None:
        """Start the process."""
        self._do(lambda: self._link.fork(self.number, env))

    def send(self, frames: bytes) -> None:
        """Send calls."""
        self._do(lambda: self._link.send(self.number, frames))

    def request(self, message: msgspec.Struct) -> None:
        """Send a request about calls."""
        data = frame(message)
        self._do(lambda: self._link.control(self.number, data))

    def close(self) -> None:
        """Let the process end when its calls have ended."""
        self.is_closing = True
        self._do(lambda: self._link.end(self.number))

    def kill(self) -> None:
        """Kill the process, with those that it started."""
        self._do(lambda: self._link.kill(self.number))

    def await_ends(self, executors: Iterable[int]) -> None:
        """Let whatever follows wait until these executors have ended, which have its GPUs."""
        self._former.update(executors)

    def on_other_ended(self, number: int) -> None:
        """Go on, if this was the last executor that it waited for."""
        if number in self._former:
            self._former.remove(number)
            while self._waiting_for_gpus and not self._former:
                self._waiting_for_gpus.pop(0)()

    def _do(self, operation: Callable[[], None]) -> None:
        if self._former:
            self._waiting_for_gpus.append(operation)
        else:
            operation()


class HostExecutors:
    """The executors of one host that are idle, and its link."""

    def __init__(self, name: str, gpus: list[str], most_idle: int, link: HostLink) -> None:
        self.name = name
        self.gpus = gpus
        self.most_idle = most_idle
        self.link = link
        self.idle: dict[Kind, list[Executor]] = {}

    def environment(self, kind: Kind) -> dict[str, str]:
        """Return the variables of an executor: its packages, and the GPUs that it sees."""
        devices, packages = kind
        variables = variables_of(packages)
        if not devices and not self.gpus:
            return variables
        names = [self.gpus[each] if each < len(self.gpus) else str(each) for each in devices]
        return {**variables, "CUDA_VISIBLE_DEVICES": ",".join(names)}


class ExecutorPool:
    """The executors of all hosts, by their numbers."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._made = 0
        self._hosts: dict[str, HostExecutors] = {}
        self._executors: dict[int, Executor] = {}

    def add_host(self, host: HostExecutors) -> None:
        """Add a host."""
        self._hosts[host.name] = host

    def remove_host(self, name: str, ended: str) -> None:
        """Handle the end of a host: that of its executors."""
        del self._hosts[name]
        for executor in list(self._executors.values()):
            if executor.host == name:
                self.on_ended(executor.number, ended)

    def hosts(self) -> list[str]:
        """List the names of the hosts."""
        return list(self._hosts)

    def count_on(self, host: str) -> int:
        """Count the executors of a host."""
        return sum(each.host == host for each in self._executors.values())

    def busy(self) -> Iterator[Executor]:
        """Yield the executors that have calls."""
        return (each for each in self._executors.values() if each.calls)

    def find(self, number: int) -> Executor | None:
        """Return the executor of a number, unless it has ended."""
        return self._executors.get(number)

    def acquire(
        self, allocation: Allocation, packages: Sequence[str], *, fresh: bool = False
    ) -> Executor:
        """Return an executor for an allocation: one that is idle, or a new one."""
        host = self._hosts[allocation.host]
        kind = allocation.devices, tuple(packages)
        idle = host.idle.get(kind)
        if idle and not fresh:
            executor = idle.pop()
            # Processes with a part of a GPU each share it; beside a whole one no other is kept.
            ending = self._free_gpus(
                host, allocation.devices, kept=kind if allocation.shares_gpu else None
            )
            executor.await_ends(ending)
        else:
            ending = self._free_gpus(host, allocation.devices)
            self._made += 1
            executor = Executor(self._made, host.name, kind, host.link)
            self._executors[executor.number] = executor
            executor.await_ends(ending)
            executor.start(host.environment(kind))
        executor.allocation = allocation
        return executor

    def release(self, executor: Executor, *, retire: bool = False) -> None:
        """Keep an executor for the next allocation, or end it."""
        executor.allocation = None
        host = self._hosts.get(executor.host)
        if host is None:
            return
        idle = host.idle.setdefault(executor.kind, [])
        if retire or len(idle) >= host.most_idle:
            executor.close()
        else:
            idle.append(executor)

    def _free_gpus(
        self, host: HostExecutors, devices: Sequence[int], kept: Kind | None = None
    ) -> list[int]:
        """End the idle executors of these GPUs: they keep GPU memory that no one else can use.

        PyTorch, for one, returns what its tensors used to CUDA only when its process ends. Return
        the executors whose processes have not ended yet.
        """
        if not devices:
            return []
        for kind, idle in host.idle.items():
            if kind != kept and not set(devices).isdisjoint(kind[0]):
                for executor in idle:
                    executor.close()
                idle.clear()
        return [
            number
            for number, each in self._executors.items()
            if each.is_closing
            and each.host == host.name
            and not set(devices).isdisjoint(each.kind[0])
        ]

    def on_calls(self, number: int, data: bytes) -> None:
        """Handle what an executor sent."""
        executor = self._executors.get(number)
        if executor is None:
            return
        try:
            messages = executor.received.feed(data)
        except msgspec.DecodeError as error:
            log.warning("A process of tasks sent what cannot be read, and is killed: %s", error)
            executor.kill()
            return
        for message in messages:
            self._events.on_message(executor, message)

    def on_ended(self, number: int, ended: str) -> None:
        """Handle the end of an executor."""
        executor = self._executors.pop(number, None)
        if executor is None:
            return
        if host := self._hosts.get(executor.host):
            idle = host.idle.get(executor.kind, [])
            if executor in idle:
                idle.remove(executor)
        for each in list(self._executors.values()):
            each.on_other_ended(number)
        self._events.on_executor_ended(executor, ended)


def describe_status(status: int) -> str:
    """Describe how a process ended."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
