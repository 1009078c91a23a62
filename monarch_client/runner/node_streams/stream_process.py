"""The process that serves a node's streams: runs until the runner ends it, or is lost.

The end of its standard input is the end of the runner.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.code_sync.node_code import NodeCode
from monarch_client.runner.node_streams.dialing import Dialer
from monarch_client.runner.node_streams.forward import serve_forward
from monarch_client.runner.node_streams.open_sessions import OpenSessions
from monarch_client.runner.node_streams.server import NodeServer
from monarch_client.runner.node_streams.settings import read_settings
from monarch_client.runner.node_streams.shells import Shells

if TYPE_CHECKING:
    from typing import Mapping

    from monarch_client.runner.node_streams.server import Service
    from monarch_client.runner.node_streams.settings import StreamSettings

_STANDARD_INPUT = 0
_NEWS_BYTES = 4096


def main(settings_file: str) -> None:
    """Serve the streams of the node that the file describes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve(read_settings(Path(settings_file))))
    # Threads that still look up a name must not hold the exit.
    os._exit(0)


def services_of(
    settings: StreamSettings, code: NodeCode, sessions: OpenSessions
) -> Mapping[str, Service]:
    """Return the services of a node by name; `opening.CALLERS` has who may open them."""
    shells = Shells(settings.shells)
    return {
        "forward": serve_forward,
        "shell": shells.serve,
        "sessions": sessions.serve,
        **code.services,
    }


async def _serve(settings: StreamSettings) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    os.set_blocking(_STANDARD_INPUT, False)
    loop.add_reader(_STANDARD_INPUT, lambda: _read_news(over))
    loop.add_signal_handler(signal.SIGTERM, over.set)
    certificates = Path(settings.certificates)
    code = NodeCode(settings.code, Dialer(settings.addresses, settings.port, certificates).dial)
    sessions = OpenSessions()
    server = NodeServer(services_of(settings, code, sessions), sessions)
    await server.listen(settings.addresses[settings.rank], settings.port, certificates)
    await code.resume()
    await over.wait()
    await server.close()


def _read_news(over: asyncio.Event) -> None:
    try:
        is_over = not os.read(_STANDARD_INPUT, _NEWS_BYTES)
    except BlockingIOError:
        is_over = False
    if is_over:
        over.set()
