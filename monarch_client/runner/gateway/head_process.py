"""The gateway's process on the head: runs until the runner ends it, or is lost.

Its standard input brings the runner's news, one JSON object a line; the end of it is the end of the
runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path

from monarch_client.runner.gateway.head import Head
from monarch_client.runner.gateway.settings import read_settings

_STANDARD_INPUT = 0
_MAX_NEWS_BYTES = 64 * 1024


def main(settings_file: str) -> None:
    """Serve as the head of the attempt that the file describes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve(Path(settings_file)))
    # Threads that still wait for the portal must not hold the exit.
    os._exit(0)


async def _serve(settings_file: Path) -> None:
    head = Head(read_settings(settings_file))
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    news = _News(head, over)
    os.set_blocking(_STANDARD_INPUT, False)
    loop.add_reader(_STANDARD_INPUT, news.read)
    loop.add_signal_handler(signal.SIGTERM, over.set)
    serving = asyncio.ensure_future(head.run())
    ending = asyncio.ensure_future(over.wait())
    await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()  # raises what broke it
    loop.remove_reader(_STANDARD_INPUT)
    # The runner wrote its last news before it sent the signal.
    news.read()
    await news.settled()
    await head.end()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


class _News:
    """The news of the runner, which the head reports to the portal."""

    def __init__(self, head: Head, over: asyncio.Event) -> None:
        self._head = head
        self._over = over
        self._rest = b""
        self._reports: list[asyncio.Task[None]] = []

    def read(self) -> None:
        """Read what has arrived."""
        with contextlib.suppress(BlockingIOError):
            found = os.read(_STANDARD_INPUT, _MAX_NEWS_BYTES)
            if not found:
                self._over.set()
            *lines, self._rest = (self._rest + found).split(b"\n")
            for line in lines:
                report = self._head.report_lost(int(json.loads(line)["lost"]))
                self._reports.append(asyncio.ensure_future(report))

    async def settled(self) -> None:
        """Wait a moment for the reports to leave."""
        if self._reports:
            await asyncio.wait(self._reports, timeout=1.0)
