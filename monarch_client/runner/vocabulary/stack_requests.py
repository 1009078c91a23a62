"""Requests for stack dumps, which a runner receives."""

from __future__ import annotations

from typing import Any, NamedTuple

from monarch_client.runner.vocabulary.messages import MALFORMED


class StackRequest(NamedTuple):
    """A request to dump all Python processes of a rank, or only the one with `pid`."""

    id: int
    rank: int
    pid: int | None = None


def parse_stack_requests(raw: Any) -> list[StackRequest]:
    """Parse the requests in an answer of the portal or of rank 0; skip invalid ones."""
    found = []
    for each in raw if isinstance(raw, list) else ():
        try:
            pid = each.get("pid")
            request = StackRequest(
                int(each["id"]), int(each["rank"]), None if pid is None else int(pid)
            )
        except MALFORMED:
            continue
        found.append(request)
    return found
