"""Streams to a node whose process accepts links and then sends nothing."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from monarch_client.gateway import data_links, node_links
from monarch_client.gateway.data_links import DataLinks
from monarch_client.gateway.node_links import listen_for_nodes
from monarch_client.gateway.node_stream import NodeStreamError, open_node_stream_async
from tests.unit.runner.node_streams.certificates import Certificates


class Silent:
    """A link, or the TLS on it, that takes everything and never sends."""

    def __init__(self) -> None:
        self.transport = self
        self.is_closed = False

    async def send(self, _data: bytes) -> None:
        """Take bytes."""

    async def recv(self, **_options: Any) -> bytes:
        """Wait without end."""
        return await asyncio.get_running_loop().create_future()

    receive = recv

    def abort(self) -> None:
        """Note that it is closed."""
        self.is_closed = True


class SilentNodes:
    """The control stream and the dialer of a session, all of whose nodes are silent."""

    def __init__(self) -> None:
        self.link = Silent()

    async def request(self, _op: str, **_fields: Any) -> dict[str, Any]:
        """Allow a link."""
        return {"token": "t"}

    async def dial(self, _path: str, _token: str) -> Silent:
        """Open the link."""
        return self.link


def refusal_of(folder: Path, nodes: Any) -> str:
    """Return why a stream to rank 3 is not opened."""

    async def main() -> str:
        with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
            path = Path(short, "s")
            listener.bind(str(path))
            links = DataLinks(nodes, nodes, folder, 0)
            async with await listen_for_nodes(links, listener):
                with pytest.raises(NodeStreamError) as caught:
                    await open_node_stream_async(path, 3, "shell")
                return str(caught.value)

    return asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("stage", ["handshake", "answer"])
def test_a_node_that_sends_nothing_is_reported_by_its_number(tmp_path, monkeypatch, stage) -> None:
    monkeypatch.setattr(data_links, "_HANDSHAKE_S", 0.05)
    monkeypatch.setattr(node_links, "_ANSWER_S", 0.05)
    nodes = SilentNodes()
    if stage == "answer":

        async def secured(_self: DataLinks, remote: Silent) -> Silent:
            return remote

        monkeypatch.setattr(DataLinks, "secured", secured)
    assert refusal_of(Certificates(tmp_path).laptop, nodes) == "Node 3 does not answer."
    assert nodes.link.is_closed
