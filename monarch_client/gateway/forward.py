"""A forwarded port, as OpenSSH's -L writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HOST = r"(\[[0-9a-fA-F:.]+\]|[^\[\]:]*)"
_FORWARD = re.compile(rf"(?:{_HOST}:)?(\d+):{_HOST}:(\d+)")
_LARGEST_PORT = 65535
_LOCALHOST = "localhost"


@dataclass(frozen=True)
class Forward:
    """A port here, and the host and port that the node connects to."""

    bind: str
    port: int
    host: str
    host_port: int

    @classmethod
    def parse(cls, text: str) -> Forward:
        """Parse PORT or [BIND:]PORT:HOST:PORT. ValueError."""
        if text.isdecimal():
            text = f"{text}:{_LOCALHOST}:{text}"
        found = _FORWARD.fullmatch(text)
        if found is None:
            raise ValueError(text)
        bind, port, host, host_port = found.groups()
        forward = cls(_plain(bind), int(port), _plain(host) or _LOCALHOST, int(host_port))
        if forward.port > _LARGEST_PORT or not 0 < forward.host_port <= _LARGEST_PORT:
            raise ValueError(text)
        return forward

    def __str__(self) -> str:
        bind = f"{self.bind}:" if self.bind else ""
        return f"{bind}{self.port}:{self.host}:{self.host_port}"


def _plain(host: str | None) -> str:
    """Return a host without the brackets of an IPv6 address; * is every address."""
    text = (host or "").strip("[]")
    return "0.0.0.0" if text == "*" else text  # noqa: S104 - the user asked for it
