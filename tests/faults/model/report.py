"""The state of a portal, for a failure that may not come back: living parts, waiting sessions."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import redis

from tests.portal_process import PortalProcess

PATIENCE_S = 5
# The list of messages that wait.
WAITING = "mportal"
_SESSIONS = """
SELECT pid, state, wait_event_type, wait_event, round(extract(epoch FROM now() - state_change)),
       left(query, 100), (SELECT array_agg((classid, objid)) FROM pg_locks
                          WHERE pg_locks.pid = activity.pid AND locktype = 'advisory')
FROM pg_stat_activity AS activity
WHERE usename = current_user AND pid <> pg_backend_pid()
"""


def report(portal: PortalProcess) -> str:
    """Report many lines. A part that does not answer is reported as such; nothing is raised."""
    parts = f"parts: {portal.pids()}"
    return "\n".join([parts, *_broker(portal), *_database(portal), portal.logs()])


def _broker(portal: PortalProcess) -> Iterator[str]:
    try:
        with redis.Redis.from_url(portal.home.redis.url, socket_timeout=PATIENCE_S) as broker:
            waiting = broker.llen(WAITING)
            taking = sum("brpop" in client["cmd"] for client in broker.client_list())
    except redis.RedisError as error:
        yield f"redis: {type(error).__name__}: {error}"
    else:
        yield f"redis: {waiting} messages wait, {taking} takers"


def _database(portal: PortalProcess) -> Iterator[str]:
    names = "pid, state, waits for, seconds so, query, advisory locks"
    try:
        with psycopg.connect(portal.home.postgres.url(), connect_timeout=PATIENCE_S) as database:
            yield f"sessions ({names}):"
            yield from (f"  {row}" for row in database.execute(_SESSIONS).fetchall())
    except psycopg.Error as error:
        yield f"postgres: {type(error).__name__}: {error}"
