"""Every message of another program is decoded, or refused by the one error of its decoder."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import InvalidFrameError
from jobs.gateway import messages as gateway
from jobs.ground.messages import Decoder, MalformedMessageError, Number, Text
from jobs.logs.frames import parse
from monarch_client.gateway.node_stream import NodeStreamError, answer_in
from monarch_client.runner.code import manifest
from monarch_client.runner.code.errors import FormatError
from monarch_client.runner.code_sync import messages as code_sync
from monarch_client.runner.delivery import portal_proof
from monarch_client.runner.delivery.push import Answer
from monarch_client.runner.gateway.links import LinkRequest
from monarch_client.runner.node_streams import messages as node_streams
from monarch_client.runner.node_streams import opening
from monarch_client.runner.peers import wire
from monarch_client.runner.scripts.mportal_proxies import channel
from monarch_client.runner.vocabulary.messages import MALFORMED, MalformedError, object_in
from monarch_client.runner.vocabulary.stack_requests import parse_stack_requests


class Kind(NamedTuple):
    """A kind of message: its decoder, a sound example, and the error of the decoder."""

    decode: Callable[[bytes], object]
    sound: Any
    error: type[Exception] | tuple[type[Exception], ...]


def from_stream(read: Callable[[asyncio.StreamReader], Any]) -> Callable[[bytes], object]:
    """Return a decoder of bytes by a function that reads a stream."""

    def decode(content: bytes) -> object:
        async def run() -> object:
            reader = asyncio.StreamReader()
            reader.feed_data(content)
            reader.feed_eof()
            return await read(reader)

        return asyncio.run(run())

    return decode


def hello_of_proxies(content: bytes) -> object:
    """Decode a frame of the kind hello with this content."""
    head = channel._HEADER.pack(b"H", 0, len(content))
    return from_stream(channel.read_hello)(head + content)


def answer_of_the_portal(content: bytes) -> object:
    """Read all of an answer; what is not there, or malformed, has a value of its own."""
    answer = Answer(200, content)
    found = (answer.acknowledged, answer.stop_grace_s, answer.stack_requests)
    return (*found, answer.wants_gateway, answer.code, answer.is_about_frames)


def order_of_a_link(content: bytes) -> object:
    return LinkRequest.parse(object_in(content))


SIGNATURE = {"leaf": "PEM", "ca": "PEM", "not_after": 9, "detail": "why"}
FROM_HEADS: list[dict[str, Any]] = [
    {
        "op": "hello",
        "attempt": 1,
        "python": "3.11.7",
        "torchmonarch": "0.7.0",
        "workers": [{"rank": 0, "host": "node0", "address": "service@tls://10.0.0.5:26600"}],
        "nodes": [{"rank": 0, "host": "node0"}],
        "meshes": {"trainers": [0]},
    },
    {"op": "signed", "id": 1, **SIGNATURE},
    {"op": "refused", "id": 1, "detail": "why"},
    {"op": "lost_hosts", "ranks": [1]},
    {"op": "dial_failed", "session": 1, "link": 1, "generation": 1, "detail": "why"},
    {"op": "session_lost", "session": 1, "detail": "why"},
]
FROM_SESSIONS: list[dict[str, Any]] = [
    {"op": "link", "link": 1, "generation": 1, "rank": 0, "kind": "node"},
    {"op": "sign", "id": 1, "csr": "PEM"},
    {"op": "close"},
]
FRAMES: list[dict[str, Any]] = [
    {"kind": "line", "stream": "stdout", "text": "x", "more": False},
    {"kind": "stage", "stage": "run", "phase": "end", "ok": False, "detail": "exit 1"},
    {"kind": "worker", "status": "LOST", "about": 1, "host": "h", "address": "a", "pid": 1},
    {"kind": "exit", "exit_code": 137, "signal": 9},
    {"kind": "stacks", "ask": 1, "pid": 2, "command": "c", "text": "t", "left_out": 0},
    {"kind": "end", "reason": "USER_CODE", "exit_code": 1, "message": "m", "evidence": "e"},
]
HOST = {"id": "h", "rank": 0, "state": "up", "why": "", "left_out": 0, "procs": []}
STATES: list[dict[str, Any]] = [
    {"kind": "metrics", "cpu": 1.5, "cpus": 4, "gpus": [{"index": 0, "name": "H100"}]},
    {"kind": "mesh", "answers": True, "why": "", "left_out": 0, "hosts": [HOST]},
    {"kind": "tasks", "contexts": [{}], "left_out": 0},
]


def kinds() -> Iterator[tuple[str, Kind]]:
    """Yield each kind of message by a name."""
    malformed = MalformedMessageError
    for each in FROM_HEADS:
        yield f"head: {each['op']}", Kind(gateway.decode_from_head, each, malformed)
    for each in FROM_SESSIONS:
        yield f"session: {each['op']}", Kind(gateway.decode_from_session, each, malformed)
    size = {"rank": 1, "rows": 30, "columns": 90}
    yield "browser: size", Kind(gateway.decode_size, size, malformed)
    for each in FRAMES:
        frame = {"rank": 0, "seq": 1, "t": 1.5, **each}
        yield f"frame: {each['kind']}", Kind(lambda raw: parse(raw, 2), frame, InvalidFrameError)
    for each in STATES:
        frame = {"rank": 0, "t": 1.5, **each}
        yield f"frame: {each['kind']}", Kind(lambda raw: parse(raw, 2), frame, InvalidFrameError)
    dial = {"op": "dial", "session": 1, "link": 1, "generation": 1, "rank": 0, "token": "t"}
    yield "order: dial", Kind(order_of_a_link, dial, MALFORMED)
    yield "answer of the portal", Kind(answer_of_the_portal, ANSWER, ())
    yield (
        "stack requests",
        Kind(
            lambda raw: parse_stack_requests(object_in(raw).get("stacks")), ANSWER, MalformedError
        ),
    )
    origin = portal_proof.Origin("m", "a", 1, 1)
    proof = {**origin._asdict(), "mac": origin.mac("d", "n")}
    yield (
        "proof of the portal",
        Kind(
            lambda raw: portal_proof._proved_origin(raw, "d", "n"),
            proof,
            portal_proof.UnprovedError,
        ),
    )
    peer = {"hello": {"rank": 1, "token": "t", "attempt_id": 1}, "number": 1, "frames": 0}
    yield (
        "peer",
        Kind(lambda raw: from_stream(wire.receive)(raw + b"\n"), peer, wire.WireError),
    )
    code = {"sync": "d", "folders": [], "need": [], "hints": []}
    yield "code", Kind(lambda raw: code_sync.unpack(raw + b"\n"), code, code_sync.MessageError)
    opened = {"open": "shell", "command": "ls", "terminal": size}
    yield (
        "node stream: opening",
        Kind(lambda raw: from_stream(opening.read_line)(raw + b"\n"), opened, opening.RefusedError),
    )
    yield (
        "node stream: answer",
        Kind(lambda raw: answer_in(raw + b"\n"), {"ok": True}, NodeStreamError),
    )
    yield (
        "node stream: exit",
        Kind(node_streams.end_of_shell, {"code": 1}, node_streams.MessageError),
    )
    yield "node stream: taken", Kind(node_streams.taken_bytes, 5, node_streams.MessageError)
    yield "manifest", Kind(manifest.parse, {"a": {"folder": "0" * 64}}, FormatError)
    hello = {"version": 1, "received": 0}
    yield "proxies: hello", Kind(hello_of_proxies, hello, channel.ChannelError)


ANSWER: dict[str, Any] = {
    "acked": {"0": 1},
    "stop": {"grace_s": 10},
    "stacks": [{"id": 1, "rank": 0, "pid": 7}],
    "gateway": True,
    "type": "urn:mportal:problem:invalid_frame",
}
KINDS = dict(kinds())
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([2**53, 2**64, -1, "\0", "\ud800", "run", "LOST", 1e400]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@st.composite
def malformed(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw a kind and a message of it in which one value, at any depth, is another."""
    name = draw(st.sampled_from(sorted(KINDS)))
    sound = KINDS[name].sound
    paths = list(paths_in(sound))
    return name, json.dumps(replaced(sound, draw(st.sampled_from(paths)), draw(ODD))).encode()


def paths_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each part of a value, itself included."""
    yield ()
    parts = {} if not isinstance(value, dict | list) else value
    for key, each in parts.items() if isinstance(parts, dict) else enumerate(parts):
        yield from ((key, *path) for path in paths_in(each))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a value with the part at a path replaced by another."""
    if not path:
        return other
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


def is_storable(found: object) -> bool:
    """Whether a decoded message of the gateway can be stored: no NUL, no NaN, no half character."""
    text = json.dumps(msgspec.to_builtins(found), allow_nan=False)
    return "\\u0000" not in text and "\\ud8" not in text


@pytest.mark.parametrize("name", KINDS)
def test_a_sound_message_is_decoded(name: str) -> None:
    KINDS[name].decode(json.dumps(KINDS[name].sound, separators=(",", ":")).encode())


# Of each kind, what differs from a sound message: a field, or all of it.
MALFORMED_ONES: list[tuple[str, dict[str, Any] | bytes]] = [
    ("head: hello", {"python": "\0"}),
    ("head: session_lost", {"detail": "\0"}),
    ("session: link", {"generation": "1"}),
    ("browser: size", {"rank": math.inf}),
    ("browser: size", {"rows": None}),
    ("frame: line", {"kind": []}),
    ("frame: line", {"seq": 0}),
    ("frame: metrics", {"rank": 2}),
    ("order: dial", {"link": None}),
    ("stack requests", b"[]"),
    ("proof of the portal", {"port": 2}),
    ("proof of the portal", {"mac": None}),
    ("peer", {"frames": math.inf}),
    ("peer", {"frames": None}),
    ("code", b"[]"),
    ("node stream: opening", b"[]"),
    ("node stream: answer", b"[]"),
    ("node stream: exit", {"code": []}),
    ("node stream: taken", b"9" * 5000),
    ("manifest", {"a": {"folder": 5}}),
    ("proxies: hello", {"version": "1"}),
    ("proxies: hello", b"[" * 100_000),
]


@pytest.mark.parametrize(("name", "other"), MALFORMED_ONES)
def test_a_malformed_message_is_refused(name: str, other: dict[str, Any] | bytes) -> None:
    kind = KINDS[name]
    raw = other if isinstance(other, bytes) else json.dumps({**kind.sound, **other}).encode()
    with pytest.raises(kind.error):
        kind.decode(raw)


@pytest.mark.parametrize(
    "raw", [b'{"acked": {"0": 1e999}}', b'{"stacks": [{"id": Infinity, "rank": 0}]}']
)
def test_a_malformed_answer_of_the_portal_says_nothing(raw: bytes) -> None:
    assert answer_of_the_portal(raw) == answer_of_the_portal(b"{}")


@given(malformed() | st.tuples(st.sampled_from(sorted(KINDS)), st.binary(max_size=60)))
def test_a_decoder_raises_no_error_but_its_own(case: tuple[str, bytes]) -> None:
    kind = KINDS[case[0]]
    with suppress(kind.error):
        found = kind.decode(case[1])
        if isinstance(found, gateway.Message | gateway.Size):
            assert is_storable(found)


def test_a_refusal_names_the_request_and_the_field() -> None:
    text = '{"op": "link", "link": 3, "generation": 1, "rank": "0"}'
    with pytest.raises(gateway.RefusedMessageError) as caught:
        gateway.decode_from_session(text)
    answer = caught.value.answer
    assert (answer["link"], answer["generation"]) == (3, 1)
    assert "rank" in answer["detail"]


@given(st.text())
def test_text_with_a_nul_is_refused_and_other_text_is_not(text: str) -> None:
    decoder = Decoder(dict[Text, Number])
    raw = json.dumps({text: 1}, ensure_ascii=False).encode()
    if "\0" in text:
        with pytest.raises(MalformedMessageError):
            decoder.decode(raw)
    else:
        assert decoder.decode(raw) == {text: 1}
