"""What a runner is asked for when somebody wants to see where its programs stand."""

from __future__ import annotations

from typing import Any, NamedTuple


class StackAsk(NamedTuple):
    """One stack dump: of all Python processes of a rank, or of the one with `pid`."""

    id: int
    rank: int
    pid: int | None = None


def asks_in(raw: Any) -> list[StackAsk]:
    """Those in an answer of the portal or of rank 0; what cannot be read is left out."""
    found = []
    for each in raw if isinstance(raw, list) else ():
        try:
            pid = each.get("pid")
            ask = StackAsk(int(each["id"]), int(each["rank"]), None if pid is None else int(pid))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        found.append(ask)
    return found
