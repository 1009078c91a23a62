"""Finding out what became of a request to SkyPilot's server. Never imports sky.

Its client waits without bound for an end, and too shortly for a request to be accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from monarch_client.runner.base.retry import Retry
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from monarch_client.skypilot.rows import Row, read

FINISHED: Final = {"SUCCEEDED", "FAILED", "CANCELLED"}
OPEN: Final = {"PENDING", "RUNNING"}
# SkyPilot's client gives its server five seconds to accept; a busy one may take longer.
ACCEPT_PATIENCE_S = 30.0
ACCEPT_LOOK_S = 1.0
FIRST_LOOK_S = 0.03
LONGEST_LOOK_S = 1.0


def accepted(
    name: str,
    ask: Callable[[], Any],
    requests: Callable[[], Sequence[Row]],
    *,
    lost: type[Exception] | tuple[type[Exception], ...],
    patience_s: float = ACCEPT_PATIENCE_S,
) -> str:
    """Return the id of the request that `ask` makes, from `requests` if the answer was lost.

    Of `lost` errors of `ask` it is unknown whether the server took the request; one is raised on
    if none of that name has come up within `patience_s` seconds.
    """
    before = {one["request_id"] for one in requests()}
    try:
        return str(ask())
    except lost:
        deadline = time.monotonic() + patience_s
        while True:
            for one in requests():
                if one["request_id"] not in before and one["name"] == name:
                    return str(one["request_id"])
            if time.monotonic() > deadline:
                raise
            time.sleep(min(ACCEPT_LOOK_S, patience_s))


def ended(look: Callable[[], Sequence[Any]], request_id: str, patience_s: float) -> Any:
    """Return the record of a request once it has ended; `look` lists it, or nothing if unknown.

    StillBusyError: not within `patience_s` seconds. SkyPilotError: the server knows none.
    """
    if not request_id:
        # To the server it would mean all of them.
        raise SkyPilotError("not_found", "A request has an id.")
    retry = Retry(FIRST_LOOK_S, LONGEST_LOOK_S, growth=1.5, limit_s=patience_s)
    while True:
        found = look()
        if not found:
            raise SkyPilotError("not_found", f"SkyPilot's server knows no request {request_id}.")
        if read(found[0], "status") in FINISHED:
            return found[0]
        if retry.is_over:
            raise StillBusyError(request_id)
        time.sleep(retry.next_pause_s())


def is_open(row: Row, name: str) -> bool:
    """Whether this is a request of that name, and under way."""
    return row["name"] == name and row["status"] in OPEN
