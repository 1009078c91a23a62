"""Admission: tokens are looked up in threads of their own, and those of guessing addresses in one.

So strangers with unknown tokens delay neither users nor the looks of the process. A good token is
admitted from any address, as over REST.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.core.signing import BadSignature, Signer
from django.db import connections
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from websockets.http11 import Request

from jobs.errors import PortalBusyError, PortalError, SessionRefusedError, TooManyTriesError
from jobs.gateway.listeners import Connection
from jobs.live.tries import begin_try, of_tokens_from

T = TypeVar("T")

# On connections between gateway processes: the client's address, signed by the first of them.
HOP_HEADER = "X-Mportal-Hop"
_FORWARDED = "X-Forwarded-For"
_hops = Signer(salt="gateway hop")


class _Lane:
    """Threads for look-ups, and the most that may wait for them."""

    def __init__(self, threads: int, most: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="admission")
        self._most = most
        self._inside = 0

    @property
    def is_full(self) -> bool:
        return self._inside >= self._most

    async def run(self, find: Callable[..., T], arguments: tuple[object, ...]) -> T:
        self._inside += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, _call, find, arguments)
        future.add_done_callback(self._leave)
        return await future

    def _leave(self, _future: object) -> None:
        self._inside -= 1


class Admission:
    """The look-ups of one gateway process. Used in its event loop alone."""

    def __init__(self) -> None:
        self._lane, self._slow_lane = _Lane(4, 256), _Lane(1, 8)
        # Addresses with too many unknown tokens, each until a moment of the monotonic clock.
        self._guessing: dict[str, float] = {}
        proxies = os.environ.get("FORWARDED_ALLOW_IPS", "")
        self._proxies = ProxyHeadersMiddleware(_no_application, proxies).trusted_hosts

    def address_of(self, connection: Connection, request: Request) -> str:
        """Return the address of the client: by trusted proxies and other processes, if any."""
        hopped = hopped_from(request)
        if hopped is not None:
            return hopped
        peer = connection.remote_address
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        forwarded = ",".join(request.headers.get_all(_FORWARDED))
        if forwarded and address in self._proxies:
            return self._proxies.get_trusted_client_host(forwarded)
        return address

    async def look_up(self, address: str, find: Callable[..., T], *arguments: object) -> T:
        """Call `find` in a thread. PortalBusyError, TooManyTriesError: too many wait for one."""
        wait_s = self._left_s(address)
        lane = self._slow_lane if wait_s else self._lane
        if lane.is_full:
            raise _too_many(wait_s) if wait_s else PortalBusyError()
        return await lane.run(find, arguments)

    async def count_unknown(self, address: str, error: SessionRefusedError) -> PortalError:
        """Count an unknown token; return `error`, or the one that asks a guesser for patience."""
        if wait_s := self._left_s(address):
            return _too_many(wait_s)
        try:
            await self.look_up(address, begin_try, of_tokens_from(address))
        except TooManyTriesError as refusal:
            self._forget_old()
            self._guessing[of_tokens_from(address).key] = time.monotonic() + refusal.retry_after
            return refusal
        except PortalBusyError as refusal:
            return refusal
        return error

    def _left_s(self, address: str) -> int:
        """Return for how many seconds an address counts as guessing; 0 if it does not."""
        until = self._guessing.get(of_tokens_from(address).key, 0.0)
        return max(0, int(until - time.monotonic()))

    def _forget_old(self) -> None:
        now = time.monotonic()
        self._guessing = {key: until for key, until in self._guessing.items() if until > now}


def hop_header(address: str) -> str:
    """Return the value that reports a client's address to another process."""
    return _hops.sign(address)


def hopped_from(request: Request) -> str | None:
    """Return the client's address as another process reports it; None if none does."""
    values = request.headers.get_all(HOP_HEADER)
    try:
        return _hops.unsign(values[0]) if len(values) == 1 else None
    except BadSignature:
        return None


def _too_many(wait_s: int) -> TooManyTriesError:
    return TooManyTriesError(
        "Too many unknown tokens came from your address. Wait, or try again.", retry_after=wait_s
    )


def _call(find: Callable[..., T], arguments: tuple[object, ...]) -> T:
    try:
        return find(*arguments)
    finally:
        connections.close_all()


async def _no_application(*_: object) -> None:
    raise NotImplementedError
