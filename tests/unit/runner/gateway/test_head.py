"""The head refuses one malformed order, keeps its stream for the others, and forgets what ended."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from monarch_client.runner.gateway.head import Head
from monarch_client.runner.gateway.settings import HeadSettings
from tests.each_case import check_each


def a_head() -> Head:
    unset = dict.fromkeys(HeadSettings._fields)
    return Head(HeadSettings(**{**unset, "workers": [], "nodes": [], "certificates": ""}))


def answers_to(content: bytes) -> list[dict[str, Any]]:
    head = a_head()
    sent: list[dict[str, Any]] = []

    async def answer(**fields: Any) -> None:
        sent.append(fields)

    head._answer = answer
    asyncio.run(head._obey_or_refuse(content))
    return sent


def check(content: bytes, op: str | None) -> None:
    found = answers_to(content)
    assert [each["op"] for each in found] == ([op] if op else [])
    assert all(each.get("link", 4) == 4 for each in found)


def test_a_malformed_order_is_refused_alone() -> None:
    dial = b'{"op":"dial","session":1,"link":4,"generation":%s,"rank":%s,"token":"t"}'
    check_each(
        [
            (dial % (b"[1]", b"0"), "dial_failed"),
            (dial % (b"1e999", b"0"), None),  # no JSON
            (dial % (b"1", b'"x"'), "dial_failed"),
            (b'{"op":"sign","id":3}', "refused"),
            (b"[" * 100_000, None),
            (b"x", None),
            (b"[]", None),
            (b'{"op":{}}', None),
        ],
        check,
    )


def check_forgotten(order: bytes, kept: set[int]) -> None:
    async def main() -> None:
        head = a_head()
        head._links._ended_at = {1: 0.0, 2: 0.0}
        await head._obey_or_refuse(order)
        await asyncio.gather(*head._tasks)
        assert head._links.sessions() == kept

    asyncio.run(main())


def test_sessions_that_the_portal_has_ended_are_forgotten() -> None:
    check_each(
        [
            (b'{"op":"close","session":1}', {2}),
            (b'{"op":"sessions","sessions":[2]}', {2}),
            (b'{"op":"sessions","sessions":[1,2,3]}', {1, 2}),
        ],
        check_forgotten,
    )


def test_half_of_a_character_in_a_detail_is_replaced() -> None:
    class Stream:
        def __init__(self) -> None:
            self.sent: list[str] = []

        async def send_text(self, text: str) -> None:
            self.sent.append(text)

    head, stream = a_head(), Stream()
    head._stream = stream
    asyncio.run(head._answer(op="dial_failed", link=4, detail="no file \udcff, \u00e9"))
    (text,) = stream.sent
    assert json.loads(text) == {"op": "dial_failed", "link": 4, "detail": "no file ?, \u00e9"}
