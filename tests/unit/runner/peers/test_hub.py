"""Hub and link over real sockets: all frames of a rank arrive, despite failures between."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.runner.base.config import AttemptConfig, NodeFolder, _parse
from monarch_client.runner.base.lines import Piece
from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.base.tls import client_context
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.peers.hub import Hub
from monarch_client.runner.peers.link import Link
from monarch_client.runner.place import Place
from monarch_client.runner.vocabulary.node_state import NodeState
from monarch_client.runner.vocabulary.stack_requests import StackRequest
from tests.fake_ca import make_authority
from tests.runner_harness import free_port, wait_until
from tests.unit.runner.base.test_config import MINIMAL

AUTHORITY = make_authority()


class Watcher:
    """A stand-in for the attempt that records the hub's calls."""

    def __init__(self) -> None:
        self.goal = "setup"
        self.grace_s = 7.0
        self.states: dict[int, list[NodeState]] = {}
        self.silent: list[int] = []

    def node_changed(self, rank: int, state: NodeState) -> None:
        self.states.setdefault(rank, []).append(state)

    def peer_is_silent(self, rank: int) -> None:
        self.silent.append(rank)


class Side:
    """One runner's node, with its loop on a thread."""

    def __init__(self, folder: Path, config: AttemptConfig, rank: int) -> None:
        self.loop = MainLoop()
        node = NodeFolder(folder / f"rank-{rank}")
        if config.tls:
            mint_leaf(config.tls, [config.address_of(rank)], node.certificates, "none")
        self.journal = Journal(node.journal)
        self.recorder = Recorder(self.journal, rank)
        unused: Any = None
        self.place = Place(config, rank, node, self.loop, unused, self.recorder, Samples())
        self._thread = threading.Thread(target=self.loop.run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.loop.post(self.loop.stop)
        self._thread.join(5)


class Pair:
    """A hub and one peer."""

    def __init__(self, folder: Path, **config: Any) -> None:
        nodes = [{"rank": rank, "address": "127.0.0.1"} for rank in range(3)]
        timeouts = {"setup_s": 20, "peer_silence_s": 5}
        raw = {**MINIMAL, "nodes": nodes, "timeouts": timeouts, "hub_port": free_port(), **config}
        self.config = _parse(raw)
        self.folder = folder
        self.sides: list[Side] = []
        self.links: list[Link] = []
        self.is_open = False
        self.watcher = Watcher()
        head = self.side(0)
        self.head = head
        watcher: Any = self.watcher
        self.hub = Hub(head.place, head.journal, watcher)
        self.goals: list[str] = []
        self.delivered = threading.Event()

    def side(self, rank: int) -> Side:
        self.sides.append(Side(self.folder, self.config, rank))
        return self.sides[-1]

    def link(self, side: Side) -> Link:
        link = Link(side.place, side.journal)
        link.on_goal = lambda goal, _grace_s: self.goals.append(goal)
        link.on_delivered = self.delivered.set
        link.start()
        self.links.append(link)
        return link

    def close(self) -> None:
        for link in self.links:
            link.close()
        if self.is_open:
            self.hub.close()
        for side in self.sides:
            side.close()

    def open(self) -> None:
        self.hub.open()
        self.is_open = True

    def frames(self, rank: int) -> list[dict[str, Any]]:
        lines = self.head.journal.peek(1 << 30)
        return [frame for frame in map(json.loads, lines) if frame["rank"] == rank]


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    made: list[Pair] = []

    def make(**config: Any) -> Pair:
        made.append(Pair(tmp_path, **config))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(params=["tcp", "tls"])
def pair(make_pair: Callable[..., Pair], request: pytest.FixtureRequest) -> Pair:
    return make_pair(tls=AUTHORITY if request.param == "tls" else None)


def test_frames_and_state_reach_rank_0_and_the_goal_comes_back(pair: Pair) -> None:
    pair.open()
    peer = pair.side(1)
    link = pair.link(peer)
    peer.recorder.remark("hello")
    link.update(NodeState(setup=0))
    wait_until(lambda: pair.watcher.states.get(1, [NodeState()])[-1].setup == 0)
    assert [frame["text"] for frame in pair.frames(1)] == ["hello"]
    pair.hub.send_goal("run")
    wait_until(lambda: pair.goals[-1] == "run")


def test_a_peer_that_is_earlier_than_rank_0_waits_for_it(pair: Pair) -> None:
    peer = pair.side(2)
    link = pair.link(peer)
    peer.recorder.remark("early")
    link.update(NodeState(worker="ready", python="3.11"))
    pair.open()
    wait_until(lambda: pair.watcher.states.get(2))
    wait_until(lambda: len(pair.frames(2)) == 1)


def test_the_end_is_reported_only_after_every_frame_has_arrived(pair: Pair) -> None:
    pair.open()
    peer = pair.side(1)
    link = pair.link(peer)
    for _ in range(40):
        peer.recorder.write_lines("stdout", [Piece("x" * 30_000)] * 4)
    link.update(NodeState(ended=True))
    assert pair.delivered.wait(20)
    assert [frame["seq"] for frame in pair.frames(1)] == list(range(1, 161))
    wait_until(lambda: any(state.ended for state in pair.watcher.states.get(1, [])))


def test_a_broken_connection_loses_and_doubles_nothing(pair: Pair) -> None:
    pair.open()
    peer = pair.side(1)
    link = pair.link(peer)
    for round_ in range(5):
        peer.recorder.write_lines("stdout", [Piece(f"{round_}")] * 20)
        wait_until(lambda: 1 in pair.hub._peers)
        pair.hub._thread.call(pair.hub._peers[1].transport.abort)
    link.update(NodeState(ended=True))
    assert pair.delivered.wait(20)
    assert [frame["seq"] for frame in pair.frames(1)] == list(range(1, 101))
    assert pair.watcher.silent == []


def test_a_peer_that_falls_silent_is_reported_once(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(timeouts={"peer_silence_s": 1})
    pair.open()
    peer = pair.side(1)
    link = pair.link(peer)
    link.update(NodeState(setup=0))
    wait_until(lambda: 1 in pair.watcher.states)
    link.close()
    wait_until(lambda: pair.watcher.silent == [1])


def test_a_live_peer_without_news_is_not_silent(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(timeouts={"peer_silence_s": 2})
    pair.open()
    link = pair.link(pair.side(1))
    link.update(NodeState(setup=0))
    # Longer than the silence that counts: the peer shows that it lives, several times.
    wait_until(lambda: len(pair.watcher.states.get(1, [])) > 7)
    assert pair.watcher.silent == []


def test_a_peer_gives_up_a_rank_0_that_is_gone_for_good(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(timeouts={"setup_s": 0.3, "peer_silence_s": 1})
    lost = threading.Event()
    pair.link(pair.side(1)).on_lost = lost.set
    assert lost.wait(10)


def say(connect: Callable[[], socket.socket], hello: dict[str, Any]) -> bytes:
    """Return the hub's answer to a greeting; b"" if it closes the connection."""
    try:
        with connect() as connection:
            connection.settimeout(10)
            connection.sendall(json.dumps({"hello": hello, "number": 1}).encode() + b"\n")
            return connection.recv(1000)
    except OSError:
        return b""


@pytest.mark.parametrize(
    "hello",
    [
        {"rank": 1, "token": "wrong", "attempt_id": 17},
        {"rank": 1, "attempt_id": 17},
        {"rank": 1, "token": "t", "attempt_id": 18},
        {"rank": 0, "token": "t", "attempt_id": 17},
        {"rank": 7, "token": "t", "attempt_id": 17},
    ],
)
def test_a_stranger_is_not_answered(make_pair: Callable[..., Pair], hello: dict[str, Any]) -> None:
    pair = make_pair()
    pair.open()
    address = ("127.0.0.1", pair.config.hub_port)
    known = {"rank": 1, "token": "t", "attempt_id": 17}
    assert b"goal" in say(lambda: socket.create_connection(address, 5), known)
    assert say(lambda: socket.create_connection(address, 5), hello) == b""


def test_with_tls_no_peer_speaks_without_a_certificate_of_the_attempt(
    tmp_path: Path, make_pair: Callable[..., Pair]
) -> None:
    pair = make_pair(tls=AUTHORITY)
    pair.open()
    address = ("127.0.0.1", pair.config.hub_port)
    known = {"rank": 1, "token": "t", "attempt_id": 17}

    def without_tls() -> socket.socket:
        return socket.create_connection(address, 5)

    def with_leaf_of(authority: dict[str, str]) -> Callable[[], socket.socket]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        config = _parse({**MINIMAL, "tls": authority})
        assert config.tls is not None
        mint_leaf(config.tls, ["127.0.0.1"], folder, "none")
        context = client_context(folder)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return lambda: context.wrap_socket(socket.create_connection(address, 5))

    assert b"goal" in say(with_leaf_of(AUTHORITY), known)
    assert say(without_tls, known) == b""
    assert say(with_leaf_of(make_authority("another attempt")), known) == b""


def test_a_full_disk_at_rank_0_loses_no_peer_and_no_frame(
    make_pair: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the peer holds its frames without haste, and is not declared lost."""
    pair = make_pair(timeouts={"setup_s": 20, "peer_silence_s": 1})
    offered: list[int] = []
    real_offer = pair.head.journal.offer

    def offer(rank: int, last: int, lines: list[bytes]) -> bool:
        offered.append(last)
        return len(offered) > 8 and real_offer(rank, last, lines)

    monkeypatch.setattr(pair.head.journal, "offer", offer)
    pair.open()
    peer = pair.side(1)
    link = pair.link(peer)
    peer.recorder.write_lines("stdout", [Piece("kept")] * 3)
    link.update(NodeState(ended=True))
    assert pair.delivered.wait(20)
    assert [frame["text"] for frame in pair.frames(1)] == ["kept"] * 3
    assert pair.watcher.silent == []


def test_a_rank_receives_the_stack_requests_for_it_and_no_others(pair: Pair) -> None:
    pair.open()
    heard: list[StackRequest] = []
    link = pair.link(pair.side(1))
    link.on_stacks = heard.extend
    pair.hub.request_stacks([StackRequest(6, 0), StackRequest(5, 1, 77), StackRequest(7, 2)])
    wait_until(lambda: heard)
    assert set(heard) == {StackRequest(5, 1, 77)}
