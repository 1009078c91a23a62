"""The settings of PostgreSQL connections: time-outs, keep-alives and the pool."""

from __future__ import annotations

from threading import Event
from typing import Any

# Set in a process whose pool has lately tried in vain to connect.
AWAY = Event()
# After so long in silence the other side is probed, and given up after so many probes: a
# host that vanished, with a process that held locks, is noticed within about eleven seconds.
_IDLE_S, _INTERVAL_S, _COUNT = 5, 2, 3
_UNANSWERED_MS = 11_000

_SESSION = {
    # A process that sleeps inside a transaction loses it before others that wait for its rows give
    # up: no request is refused because another process hangs.
    "idle_in_transaction_session_timeout": 6_000,
    "lock_timeout": 10_000,
    # No statement of the portal lasts as long as it takes to compile one.
    "jit": "off",
    # The server's side; over a Unix socket it means nothing.
    "tcp_keepalives_idle": _IDLE_S,
    "tcp_keepalives_interval": _INTERVAL_S,
    "tcp_keepalives_count": _COUNT,
    "tcp_user_timeout": _UNANSWERED_MS,
}


def connection_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of every connection; those `given` in DATABASE_URL override ours."""
    session = " ".join(f"-c {name}={value}" for name, value in _SESSION.items())
    ours = {
        "connect_timeout": 5,
        # The same few hundred statements over and over: the server parses and plans them once for
        # each session, which halves what it spends on a job.
        "server_side_binding": True,
        "prepare_threshold": 3,
        "keepalives_idle": _IDLE_S,
        "keepalives_interval": _INTERVAL_S,
        "keepalives_count": _COUNT,
        "tcp_user_timeout": _UNANSWERED_MS,
    }
    # If a setting is given twice, the last one applies.
    return {**ours, **given, "options": f"{session} {given.get('options', '')}".strip()}


def pool_options(most: int) -> dict[str, Any]:
    """Return the options of a process's pool: at most `most` connections, none when idle."""
    return {
        "min_size": 0,
        "max_size": most,
        "max_idle": 60,
        "timeout": 10,
        # The library's own tries wait longer each time: a database that is back would stay away
        # for as long as the last pause. The next request for a connection tries again.
        "reconnect_timeout": 2,
        "reconnect_failed": _note_away,
    }


def _note_away(_pool: object) -> None:
    AWAY.set()
