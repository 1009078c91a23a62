"""The service `shell`: runs a command, or an interactive shell, for the life of a stream."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

from monarch_client.runner.node_streams.caller_input import CallerInput, cancel, complete
from monarch_client.runner.node_streams.messages import (
    DATA,
    ERRORS,
    EXIT,
    MAX_BYTES,
    SIGNAL,
    SIZE,
    pack,
)
from monarch_client.runner.node_streams.opening import RefusedError
from monarch_client.runner.node_streams.shell_process import ShellProcess
from monarch_client.runner.vocabulary.messages import MALFORMED

if TYPE_CHECKING:
    from typing import Any

    from monarch_client.runner.node_streams.opening import NodeStream
    from monarch_client.runner.node_streams.settings import ShellSettings

_MOST = 64
_SHELL = "bash"
# After the program's end, its output is read until it pauses: what it left behind may go on.
_PAUSE_S, _LONGEST_DRAIN_S = 0.3, 10.0
_LOOK_S = 0.05
# What was left behind is killed by then, and its output is at its end.
_LAST_OUTPUT_S = 5.0


class Shells:
    """The shells of a node."""

    def __init__(self, settings: ShellSettings) -> None:
        self._settings = settings
        self._running = 0

    async def serve(self, stream: NodeStream) -> None:
        """Run the `command` of the request, or a shell, on a `terminal` if it has one.

        `terminal` has the fields `name`, `rows` and `columns`.
        """
        if self._running >= _MOST:
            raise RefusedError(f"This node runs {_MOST} shells, the most of one node.")
        self._running += 1
        try:
            process = self._process_of(stream.request)
            try:
                await self._start(process, stream.request.get("terminal"))
                await stream.accept()
                await _Shell(stream, process).run()
            except BaseException:
                # The caller may leave at any point: what has started never outlives the stream.
                process.kill()
                raise
            finally:
                process.close()
        finally:
            self._running -= 1

    def _process_of(self, request: dict[str, Any]) -> ShellProcess:
        command, terminal = request.get("command"), request.get("terminal")
        if command is not None and not isinstance(command, str):
            raise RefusedError("The command of a shell must be a text.")
        argv = [_SHELL, "-c", command] if command else [_SHELL]
        env = dict(self._settings.env)
        if terminal:
            try:
                env["TERM"] = str(terminal["name"])
            except MALFORMED as error:
                raise _malformed(error) from error
            if not command:
                argv += ["--rcfile", self._settings.startup_file]
        return ShellProcess(argv, self._settings.cwd, env)

    @staticmethod
    async def _start(process: ShellProcess, terminal: Any) -> None:
        try:
            if terminal:
                await process.start_with_terminal(int(terminal["rows"]), int(terminal["columns"]))
            else:
                await process.start_with_pipes()
        except MALFORMED as error:
            raise _malformed(error) from error
        except OSError as error:
            raise RefusedError(f"The node cannot start a shell: {error}.") from error


def _malformed(error: Exception) -> RefusedError:
    return RefusedError(f"The shell's request is malformed: {error!r}.")


class _Shell:
    """One running shell and its stream."""

    def __init__(self, stream: NodeStream, process: ShellProcess) -> None:
        self._stream = stream
        self._process = process
        self._source = CallerInput(stream, self._obey)
        self._sending = 0
        self._moved_at = 0.0

    async def run(self) -> None:
        """Serve until the program has ended; end it when the stream does."""
        process = self._process
        reading = asyncio.ensure_future(self._source.read())
        feeding = asyncio.ensure_future(self._feed())
        kinds = (DATA, ERRORS)[: len(process.outputs)]
        pumps = [
            asyncio.ensure_future(self._pump(reader, kind))
            for reader, kind in zip(process.outputs, kinds)
        ]
        ending = asyncio.ensure_future(self._end(pumps))
        try:
            await complete([ending], reading)
        except asyncio.CancelledError:
            process.kill()
            self._stream.writer.write(pack(EXIT, b'{"why": "The session or its job has ended."}'))
            raise
        except (OSError, EOFError):
            await process.hang_up()
        finally:
            await cancel([reading, feeding, ending, *pumps])

    async def _end(self, pumps: list[asyncio.Task[None]]) -> None:
        """Wait for the program and its output; end what it left behind; report its exit code."""
        code = await self._process.exited()
        await self._drain(pumps)
        await self._process.hang_up()
        await asyncio.wait(pumps, timeout=_LAST_OUTPUT_S)
        await self._stream.send(EXIT, json.dumps({"code": code}).encode())

    async def _drain(self, pumps: list[asyncio.Task[None]]) -> None:
        """Wait while output comes, or the caller has yet to take it."""
        loop = asyncio.get_running_loop()
        ended_at = loop.time()
        while not all(pump.done() for pump in pumps):
            await asyncio.wait(pumps, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            now = loop.time()
            is_quiet = now - max(self._moved_at, ended_at) > _PAUSE_S
            if not self._sending and (is_quiet or now - ended_at > _LONGEST_DRAIN_S):
                return

    async def _feed(self) -> None:
        await self._source.feed(self._process.stdin)
        self._process.end_input()

    async def _pump(self, reader: asyncio.StreamReader, kind: bytes) -> None:
        loop = asyncio.get_running_loop()
        while True:
            content = await reader.read(MAX_BYTES)
            if not content:
                return
            self._sending += 1
            await self._stream.send(kind, content)
            self._sending -= 1
            self._moved_at = loop.time()

    def _obey(self, kind: bytes, content: bytes) -> None:
        """Do what the caller asks beside its input; what is malformed is skipped."""
        with contextlib.suppress(*MALFORMED):
            if kind == SIZE:
                rows, columns = json.loads(content)
                self._process.resize(rows, columns)
            elif kind == SIGNAL:
                self._process.signal(content.decode("ascii"))
