"""The child process of a tunnel: it keeps a forwarding command alive, and joins connections to it.

    python tunnel_process.py SETTINGS     (JSON: see `Settings`)

Prints a line of JSON at each change: {"state": ..., "detail": "..."}, where the state is "up",
"down" (the command has ended, and is started again), "refused" (the worker's port accepts no
connection) or "silent" (it accepts and does not answer). Ends with its standard input. Run by
`tunnel.Tunnel` as a file: it imports the standard library only.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Replaced in the command by the port of this machine that it forwards.
PORT = "@PORT@"
BEAT_S = 5.0
READY_S = 60.0
ANSWER_S = 20.0
FIRST_AGAIN_S = 0.5
LONGEST_AGAIN_S = 3.0
PIECE = 256 * 1024
# Monarch sends a few hundred bytes and waits; a client that sends more is another program.
MOST_HELD = 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """The arguments of the process.

    `listener` is an inherited descriptor. `command` forwards `PORT`, prints a line that begins with
    `ready` once it does, and gets a line on its standard input every few seconds. `errors` is a
    file for its messages.
    """

    listener: int
    command: list[str]
    ready: str
    errors: str


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Links:
    """The connections of the listener. They wait while the command is down, and end with it."""

    def __init__(self) -> None:
        self._port = 0
        self._is_up = asyncio.Event()
        self._joined: set[asyncio.Task[None]] = set()
        self._state = "down"

    def open(self, port: int) -> None:
        """Join the waiting connections, and new ones, to this port."""
        self._port = port
        self._is_up.set()
        self._note("up")

    async def close(self) -> None:
        """End the joined connections; new ones wait."""
        self._is_up.clear()
        self._state = "down"
        for task in list(self._joined):
            task.cancel()
        await asyncio.gather(*self._joined, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection, from its first byte to the end of either side."""
        held = b""
        try:
            while (more := await self._hold(reader)) is not None:
                held += more
                try:
                    there, back = await asyncio.open_connection("127.0.0.1", self._port)
                except OSError:
                    # The command is ending: the next one has the connection.
                    await asyncio.sleep(FIRST_AGAIN_S)
                    continue
                back.write(held)
                task = asyncio.ensure_future(self._join((reader, writer), (there, back)))
                self._joined.add(task)
                task.add_done_callback(self._joined.discard)
                await asyncio.wait([task])
                return
        finally:
            writer.transport.abort()

    async def _hold(self, reader: asyncio.StreamReader) -> bytes | None:
        """Wait for the command; what the client has sent by then, or None if it has left."""
        held = b""
        up = asyncio.ensure_future(self._is_up.wait())
        try:
            while not up.done():
                read = asyncio.ensure_future(reader.read(PIECE))
                await asyncio.wait([read, up], return_when=asyncio.FIRST_COMPLETED)
                if not read.done():
                    read.cancel()
                    with suppress(asyncio.CancelledError):
                        held += await read
                    break
                piece = read.result()
                held += piece
                if not piece or len(held) > MOST_HELD:
                    return None
        except OSError:
            return None
        finally:
            up.cancel()
        return held

    async def _join(self, here: Ends, there: Ends) -> None:
        sending = asyncio.ensure_future(pump(here[0], there[1]))
        receiving = asyncio.ensure_future(self._receive(there[0], here[1]))
        try:
            await asyncio.wait([sending, receiving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            receiving.cancel()
            # At once: the worker must not see this connection when the next one comes.
            there[1].transport.abort()

    async def _receive(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reading = asyncio.ensure_future(there.read(PIECE))
        try:
            if not (await asyncio.wait([reading], timeout=ANSWER_S))[0]:
                self._note("silent", f"The worker has not answered for {ANSWER_S:.0f} s.")
            first = await reading
        finally:
            reading.cancel()
        # The command accepts, and closes at once if the worker's port refuses.
        self._note("up" if first else "refused", "The worker's port accepts no connection.")
        if first:
            writer.write(first)
            await pump(there, writer)

    def _note(self, state: str, detail: str = "") -> None:
        if state != self._state and self._is_up.is_set():
            self._state = state
            report(state, detail if state != "up" else "")


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of one side; nothing is read that the other side has no room for."""
    with suppress(OSError):
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()


async def keep_forwarding(settings: Settings, links: Links) -> None:
    """Run the command, and again whenever it ends."""
    again_s = FIRST_AGAIN_S
    while True:
        was_up = await forward(settings, links)
        again_s = FIRST_AGAIN_S if was_up else min(2 * again_s, LONGEST_AGAIN_S)
        await asyncio.sleep(again_s)


async def forward(settings: Settings, links: Links) -> bool:
    """Run the command to its end; whether it was ready."""
    port = free_port()
    with Path(settings.errors).open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(word.replace(PORT, str(port)) for word in settings.command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    is_up = False
    try:
        is_up = await asyncio.wait_for(is_ready(process, settings.ready.encode()), READY_S)
        if is_up:
            links.open(port)
            await beat(process)
    except asyncio.TimeoutError:
        pass
    finally:
        # Not `process.kill`: it takes the exit code of a process that has ended from asyncio.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await links.close()
    code = await process.wait()
    text = Path(settings.errors).read_text(errors="replace").strip()[-1000:]
    report("down", text or f"{settings.command[0]} ended with code {code}")
    return is_up


async def is_ready(process: asyncio.subprocess.Process, ready: bytes) -> bool:
    """Wait for the ready line, below what a host's shell prints: False at the end."""
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    while line := await process.stdout.readline():
        if line.startswith(ready):
            return True
    return False


async def beat(process: asyncio.subprocess.Process) -> None:
    """Send signs of life until the command ends, or closes its output."""
    assert process.stdin is not None  # noqa: S101 - they are pipes
    assert process.stdout is not None  # noqa: S101
    end = asyncio.ensure_future(drain(process.stdout))
    while not end.done():
        with suppress(OSError):
            process.stdin.write(b"\n")
        await asyncio.wait([end], timeout=BEAT_S)


async def drain(reader: asyncio.StreamReader) -> None:
    """Read to the end and keep nothing."""
    while await reader.read(PIECE):
        pass


def free_port() -> int:
    """Return a port of this machine that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def report(state: str, detail: str = "") -> None:
    """Print a change for the parent."""
    with suppress(OSError):
        print(json.dumps({"state": state, "detail": detail}), flush=True)  # noqa: T201


async def main(settings: Settings) -> None:
    """Serve until standard input ends."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def await_end() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=await_end, daemon=True).start()
    links = Links()
    listener = socket.socket(fileno=settings.listener)
    server = await asyncio.start_server(links.serve, sock=listener, limit=PIECE)
    forwarding = asyncio.ensure_future(keep_forwarding(settings, links))
    await ended.wait()
    forwarding.cancel()
    with suppress(asyncio.CancelledError):
        await forwarding
    server.close()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(Settings(**json.loads(sys.argv[1]))))
