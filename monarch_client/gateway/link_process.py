"""The process that owns the network of a session: `python -m monarch_client.gateway.link_process`.

The user's process starts it, so that a busy interpreter does not delay pings and bytes. It reads
one line of settings (`LinkSettings`, JSON), then only the end of standard input, which ends it. It
writes events to standard output, a JSON object a line:

session     `session`, `secret`: what a restarted process opens the session with
mesh        `mesh`: versions, workers and meshes, as the job's head sent them
ready       the workers answer: Monarch may connect to the local socket
away, back  the portal is not reached (`limit_s`), and is again (`away_s`)
lost_hosts  `ranks`
lost        `reason`, `away_s`; the process ends
refused     `reason`: there is no session; the process ends
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from monarch_client.attaching.errors import AttachError
from monarch_client.gateway import certificates
from monarch_client.gateway.data_links import RANK, WORKER, DataLinks
from monarch_client.gateway.dialing import Dialer
from monarch_client.gateway.node_links import listen_for_nodes
from monarch_client.gateway.session_stream import LostError, RefusedError, SessionStream
from monarch_client.runner.gateway.links import NODE

_AGAIN_S = 5.0
# Restarts of this process make links newer than those of the process before.
GENERATIONS = 1 << 20


@dataclass(frozen=True)
class LinkSettings:
    """The settings of a link process. `credential`: a ticket, or a session's secret.

    `kind`: what the head connects the links to: the workers, the driver of mesh proxies, or (NODE)
    nothing but the streams of nodes.
    `listener`, `node_listener`: the numbers of the open, listening sockets that Monarch and the
    callers of node streams connect to.
    """

    portal_url: str
    credential: str
    folder: str
    listener: int
    node_listener: int
    first_generation: int = 0
    away_s: float = 0.0
    away_limit_s: float | None = None
    kind: str = WORKER
    # The key of the proof that a portal over plain http gives; it does not travel.
    token: str = ""

    def to_line(self) -> str:
        """Return the line that the process reads."""
        return json.dumps(asdict(self)) + "\n"


class LinkProcess:
    """The session, its certificate and its links, in this process."""

    def __init__(self, settings: LinkSettings) -> None:
        self._folder = Path(settings.folder)
        self._listener = socket.socket(fileno=settings.listener)
        self._node_listener = socket.socket(fileno=settings.node_listener)
        dialer = Dialer(settings.portal_url, settings.token)
        self._stream = SessionStream(
            dialer,
            settings.credential,
            report,
            away_s=settings.away_s,
            away_limit_s=settings.away_limit_s,
        )
        self._links = DataLinks(dialer, self._stream, self._folder, settings.first_generation)
        self._links.kind = settings.kind

    async def run(self) -> None:
        """Serve until the session is lost or refused, or standard input ends."""
        ending = asyncio.create_task(_input_end())
        tasks = [
            asyncio.create_task(self._stream.run()),
            asyncio.create_task(self._keep_certified()),
            ending,
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except LostError as error:
            report("lost", reason=str(error), away_s=error.away_s)
        except (RefusedError, AttachError) as error:
            report("refused", reason=str(error))
        else:
            await self._stream.close()
        if ending.done():
            # The program removes its folder as well, unless it was killed.
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _keep_certified(self) -> None:
        """Have the head sign a certificate, now and whenever half of its life has passed."""
        is_certified = certificates.is_certified(self._folder)
        if is_certified:  # by the process before this one
            await self._listen()
        request = await asyncio.to_thread(certificates.make_request, self._folder)
        while True:
            try:
                signed = await self._stream.request("sign", csr=request)
            except TimeoutError:
                continue  # the next stream
            except RefusedError:
                if not is_certified:
                    raise
                # The head refuses while it restarts; half of the certificate's life is left.
                await asyncio.sleep(_AGAIN_S)
                continue
            certificates.install(self._folder, signed["leaf"], signed["ca"])
            if not is_certified:
                await self._probe()
                await self._listen()
                is_certified = True
            report("ready")
            await asyncio.sleep(max(_AGAIN_S, (signed["not_after"] - time.time()) / 2))

    async def _listen(self) -> None:
        await self._links.listen(self._listener)
        await listen_for_nodes(self._links, self._node_listener)

    async def _probe(self) -> None:
        """Connect to the workers once, since Monarch would give no reason. RefusedError."""
        if self._links.kind == NODE:
            return  # each stream has an answer of its own
        try:
            await self._links.probe()
        except RefusedError as error:
            raise RefusedError(f"the worker of node {RANK} does not answer ({error})") from error


def report(event: str, **fields: Any) -> None:
    """Send an event to the user's process."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


async def _input_end() -> None:
    """Wait for the end of standard input: the user's process has ended, or wants no session."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def _read_settings() -> LinkSettings:
    """Read the first line of standard input, and no byte of what follows."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            sys.exit("no settings")
        line += byte
    return LinkSettings(**json.loads(line))


if __name__ == "__main__":
    asyncio.run(LinkProcess(_read_settings()).run())
