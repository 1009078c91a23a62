"""Actors in the code on the cluster: workers, driver and native programs import this module."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from monarch.actor import Actor, current_rank, endpoint

from tests.integration.gateway.proxies.programs.probe_values import DivergedError, Report


class Probe(Actor):
    """An actor that says what it was called with."""

    def __init__(self, start: int = 0) -> None:
        self.seen = [start]
        # Not that of a message, which counts in the slice that was called.
        self.position = current_rank().rank

    @endpoint
    async def rank(self) -> int:
        return self.position

    @endpoint
    async def host(self) -> str:
        return os.environ["SKYPILOT_NODE_RANK"]

    @endpoint
    async def pid(self) -> int:
        return os.getpid()

    @endpoint
    async def echo(self, value: Any = None, *, extra: Any = None) -> Any:
        return value if extra is None else (value, extra)

    @endpoint
    async def note(self, number: int) -> int:
        self.seen.append(number)
        return len(self.seen)

    @endpoint
    async def notes(self) -> list[int]:
        return self.seen

    @endpoint
    async def wait(self, seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    @endpoint
    async def report(self) -> Report:
        return Report(self.position, [0.5, 0.25])

    @endpoint
    async def diverge(self, step: int, rank: int = -1, others_wait_s: float = 0) -> int:
        if rank in (-1, self.position):
            raise DivergedError(step)
        await asyncio.sleep(others_wait_s)
        return step

    @endpoint
    async def look_up(self, key: str) -> Any:
        return {}[key]

    @endpoint
    async def ask(self, others: Any) -> list[int]:
        return sorted((await others.rank.call()).values())

    @endpoint
    async def zeros(self, count: int) -> bytes:
        return bytes(count)

    @endpoint
    async def opaque(self) -> Any:
        return object()

    @endpoint
    async def die(self) -> None:
        os._exit(3)


class Unprepared(Actor):
    """An actor with an error of a class that only the cluster imports."""

    @endpoint
    async def fail(self) -> None:
        class UnpreparedError(Exception):
            """An exception that no other process has."""

        raise UnpreparedError("not here")


class Colliding(Actor):
    """An actor with an endpoint that a mesh has a method for."""

    @endpoint
    async def size(self) -> int:
        return 1
