"""A channel acknowledges what was handled, and reads no more than it may have unhandled."""

from __future__ import annotations

import asyncio
import socket

import pytest

from monarch_client.runner.scripts.mportal_proxies import channel, outbox
from monarch_client.runner.scripts.mportal_proxies.channel import Channel

KEEP = 20_000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (channel, outbox):
        monkeypatch.setattr(module, "KEEP_BYTES", KEEP)


class Pair:
    """A channel that sends, and one whose messages wait in `received`."""

    def __init__(self) -> None:
        self.received: list[bytearray] = []
        self.sender = Channel(lambda _message: None)
        self.receiver = Channel(self.received.append)
        self._runs: list[asyncio.Task[None]] = []

    async def connect(self) -> None:
        """Connect both over a new pair of sockets."""
        ends = zip((self.sender, self.receiver), socket.socketpair(), strict=True)
        handled = {self.sender: self.receiver.handled, self.receiver: self.sender.handled}
        for end, each in ends:
            reader, writer = await asyncio.open_connection(sock=each)
            run = end.run(reader, writer, handled[end])
            self._runs.append(asyncio.ensure_future(run))

    async def cut(self) -> None:
        """Cut the connection."""
        self.sender.disconnect()
        self.receiver.disconnect()
        await asyncio.gather(*self._runs, return_exceptions=True)
        self._runs.clear()

    def handle(self) -> bytearray:
        """Handle the oldest message that was received."""
        message = self.received.pop(0)
        self.receiver.note_handled(message)
        return message


async def until(condition: object) -> None:
    """Wait for a condition."""
    assert callable(condition)
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_sender_is_full_until_its_messages_are_handled() -> None:
    async def story() -> None:
        pair = Pair()
        await pair.connect()
        for number in range(4):
            pair.sender.send(bytes([number]) * (KEEP // 4))
        await until(lambda: len(pair.received) == 4)
        assert pair.sender.outbox.is_full
        pair.handle()
        await until(lambda: not pair.sender.outbox.is_full)
        assert pair.sender.outbox.size == 3 * KEEP // 4
        await pair.cut()

    asyncio.run(story())


def test_a_sender_that_does_not_wait_is_not_read() -> None:
    async def story() -> None:
        pair = Pair()
        await pair.connect()
        for number in range(200):
            pair.sender.send(bytes([number]) * KEEP)
        for number in range(200):
            await until(lambda: pair.received)
            assert [message[0] for message in pair.received] == [number]
            pair.handle()
        await until(lambda: pair.sender.outbox.size == 0)
        await pair.cut()

    asyncio.run(story())


def test_what_was_received_and_not_handled_arrives_once_after_a_cut() -> None:
    async def story() -> None:
        pair = Pair()
        await pair.connect()
        for number in range(3):
            pair.sender.send(bytes([number]))
        await until(lambda: len(pair.received) == 3)
        pair.handle()
        await pair.cut()
        pair.sender.send(b"\x03")
        await pair.connect()
        await until(lambda: len(pair.received) == 3)
        assert [pair.handle()[0] for _ in range(3)] == [1, 2, 3]
        await until(lambda: pair.sender.outbox.size == 0)
        await pair.cut()

    asyncio.run(story())
