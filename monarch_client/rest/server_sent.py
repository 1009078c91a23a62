"""Reading a stream of server-sent events, as the HTML standard defines it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSentEvent:
    """One event. `id` is the last one the stream has named so far."""

    event: str
    data: str
    id: str


def read_events(chunks: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Yield the events of a body as it arrives, without one that the end cuts off."""
    last_id, kind = "", ""
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield ServerSentEvent(kind or "message", "\n".join(data), last_id)
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last_id = value


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    # Only CR and LF end a line here; str.splitlines would also cut at U+2028 inside the data.
    rest = b""
    for chunk in chunks:
        rest += chunk
        *lines, rest = rest.split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
