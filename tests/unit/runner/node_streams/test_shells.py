"""Shells of a node: exit codes, input, terminals, signals, and that nothing outlives the stream."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.process_tree import started_at
from monarch_client.runner.node_streams.messages import (
    DATA,
    END,
    ERRORS,
    EXIT,
    MAX_BYTES,
    SIGNAL,
    SIZE,
    TAKEN,
    WINDOW_BYTES,
    pack,
    receive,
)
from monarch_client.runner.node_streams.open_sessions import OpenSessions
from monarch_client.runner.node_streams.server import NodeServer
from monarch_client.runner.node_streams.settings import ShellSettings
from monarch_client.runner.node_streams.shells import Shells
from tests.runner_harness import free_port
from tests.unit.runner.node_streams.certificates import Certificates, opened, request, run


class Caller:
    """A caller whose shell runs: what it wrote is collected while the test waits."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.output, self.errors, self.taken = b"", b"", 0
        self.exit: dict[str, Any] | None = None

    def send(self, kind: bytes, content: bytes = b"") -> None:
        self.writer.write(pack(kind, content))

    async def read(self) -> None:
        kind, content = await receive(self.reader)
        if kind == DATA:
            self.output += content
        elif kind == ERRORS:
            self.errors += content
        elif kind == TAKEN:
            self.taken += int(content)
        else:
            assert kind == EXIT
            self.exit = json.loads(content)

    async def until(self, text: bytes) -> None:
        while text not in self.output:
            await self.read()

    async def to_exit(self) -> dict[str, Any]:
        while self.exit is None:
            await self.read()
        return self.exit


class Node:
    """A node whose shells start in `folder`."""

    def __init__(self, certificates: Certificates, folder: Path) -> None:
        self._certificates = certificates
        self._folder = folder
        self.port = free_port()
        startup = folder / "startup"
        startup.write_text("PS1='ready> '\n")
        env = {**os.environ, "GREETING": "from the job"}
        self.server = NodeServer(
            {"shell": Shells(ShellSettings(str(folder), env, str(startup))).serve},
            OpenSessions({7: "ssh"}),
        )

    @contextlib.asynccontextmanager
    async def shell(self, **fields: Any) -> AsyncIterator[Caller]:
        line = request("shell", **fields)
        async with opened(self._certificates.laptop, self.port, line) as (answer, reader, writer):
            assert answer == {"ok": True}
            yield Caller(reader, writer)

    async def refusal(self, **fields: Any) -> str:
        line = request("shell", **fields)
        async with opened(self._certificates.laptop, self.port, line) as (answer, _, _):
            return str(answer["error"])

    async def __aenter__(self) -> Node:
        await self.server.listen("127.0.0.1", self.port, self._certificates.node)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()


@pytest.fixture
def node(certificates: Certificates, tmp_path: Path) -> Node:
    return Node(certificates, tmp_path)


TERMINAL = {"name": "xterm", "rows": 30, "columns": 90}


async def gone(*pids: int) -> None:
    while any(started_at(pid) is not None for pid in pids):
        await asyncio.sleep(0.02)


def test_a_command_has_the_jobs_environment_and_reports_its_output_and_exit_code(
    node: Node, tmp_path: Path
) -> None:
    async def main() -> None:
        async with node:
            for command, out, err, code in (
                ("pwd; echo $GREETING", f"{tmp_path}\nfrom the job\n", "", 0),
                ("echo wrong >&2; exit 7", "", "wrong\n", 7),
                ("kill -TERM $$", "", "", 143),
                ("no-such-program", "", "bash: line 1: no-such-program: command not found\n", 127),
            ):
                async with node.shell(command=command) as caller:
                    assert await caller.to_exit() == {"code": code}
                    assert (caller.output, caller.errors) == (out.encode(), err.encode())

    run(main)


def test_input_of_any_bytes_reaches_the_program_whole(node: Node) -> None:
    data = bytes(range(256)) * (4 * WINDOW_BYTES // 256)

    async def send(caller: Caller) -> None:
        sent = 0
        while sent < len(data):
            while sent + MAX_BYTES > caller.taken + WINDOW_BYTES:
                await caller.read()
            caller.send(DATA, data[sent : sent + MAX_BYTES])
            sent += MAX_BYTES
        caller.send(END)

    async def main() -> None:
        async with node, node.shell(command="sha256sum") as caller:
            await send(caller)
            assert await caller.to_exit() == {"code": 0}
            assert caller.output.split()[0].decode() == hashlib.sha256(data).hexdigest()

    run(main)


def test_a_terminal_has_its_size_and_its_control_characters(node: Node) -> None:
    async def main() -> None:
        async with node, node.shell(terminal=TERMINAL) as caller:
            await caller.until(b"ready> ")
            caller.send(DATA, b"stty size; echo $TERM; tty\n")
            await caller.until(b"/dev/pts/")
            assert b"30 90" in caller.output
            assert b"xterm" in caller.output
            caller.send(SIZE, b"[41, 123]")
            caller.send(DATA, b"stty size\n")
            await caller.until(b"41 123")
            caller.send(DATA, b"sh -c 'echo u\"\"p; exec sleep 1000'\n")
            await caller.until(b"up\r\n")
            caller.output = b""
            caller.send(DATA, b"\x03")
            await caller.until(b"ready> ")
            caller.send(DATA, b"echo code $?\n")
            await caller.until(b"code 130")
            caller.send(DATA, b"exit 5\n")
            assert await caller.to_exit() == {"code": 5}

    run(main)


def test_a_signal_and_the_end_pass_a_program_that_reads_nothing(node: Node) -> None:
    async def main() -> None:
        async with node:
            async with node.shell(
                command="trap 'exit 9' INT; echo up; while :; do sleep 0.01; done"
            ) as caller:
                await caller.until(b"up")
                caller.send(DATA, b"x" * MAX_BYTES)
                caller.send(SIGNAL, b"INT")
                assert await caller.to_exit() == {"code": 9}
            async with node.shell(command="echo $$; exec sleep 1000") as caller:
                await caller.until(b"\n")
                caller.send(DATA, b"x" * MAX_BYTES)
            await gone(int(caller.output))

    run(main)


@pytest.mark.slow
def test_nothing_of_a_shell_outlives_its_stream_or_its_program(node: Node) -> None:
    left = "setsid sleep 1000 & echo $!; (env -i sleep 1000 & echo $!);"

    async def main() -> None:
        async with node:
            async with node.shell(
                command=f"{left} trap '' HUP; echo $$; exec sleep 1000"
            ) as caller:
                while caller.output.count(b"\n") < 3:
                    await caller.read()
            await gone(*map(int, caller.output.split()))
            async with node.shell(command=f"{left} exit 3") as caller:
                assert await caller.to_exit() == {"code": 3}
                await gone(*map(int, caller.output.split()))
            async with node.shell(terminal=TERMINAL) as caller:
                await caller.until(b"ready> ")
                caller.send(DATA, f"{left} echo $$\n".encode())
                while caller.output.count(b"\n") < 4:
                    await caller.read()
            await gone(*[int(word) for word in caller.output.split() if word.isdigit()])

    run(main)


def test_the_end_of_the_job_is_reported(node: Node) -> None:
    async def main() -> None:
        async with node, node.shell(command="echo $$; exec sleep 1000") as caller:
            await caller.until(b"\n")
            await node.server.close()
            assert await caller.to_exit() == {"why": "The session or its job has ended."}
            await gone(int(caller.output))

    run(main)


def test_a_malformed_request_is_refused(node: Node) -> None:
    async def main() -> None:
        async with node:
            for fields, why in (
                ({"command": 7}, "must be a text"),
                ({"terminal": {"name": "xterm"}}, "malformed"),
                ({"terminal": {"name": "xterm", "rows": "x", "columns": 1}}, "malformed"),
                ({"terminal": {"name": "a\0b", "rows": 1, "columns": 1}}, "malformed"),
            ):
                assert why in await node.refusal(**fields), fields

    run(main)


def test_a_caller_that_leaves_at_the_opening_leaves_no_command(tmp_path: Path) -> None:
    class Left:
        def __init__(self, command: str) -> None:
            self.request = {"command": command}

        async def accept(self) -> None:
            while not note.exists() or not note.read_text().endswith("\n"):
                await asyncio.sleep(0.01)
            raise ConnectionResetError("Connection lost")

    note = tmp_path / "pid"

    async def main() -> None:
        shells = Shells(ShellSettings(str(tmp_path), dict(os.environ), os.devnull))
        with pytest.raises(ConnectionResetError):
            await shells.serve(Left("echo $$ > pid; exec sleep 1000"))
        await gone(int(note.read_text()))

    run(main)
