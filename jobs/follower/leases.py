"""Leases on attempts: of any number of followers one reads an attempt's frames.

Times are the database's alone: each is read and written inside one statement.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from django.db import connection

# Renewed at every look (`loop.LOOK_S`), so a follower has missed two when it expires; another sees
# that within a look, which leaves three of the ten seconds in which the lines are to go on.
LEASE_S = 5.0

# The cluster is up, the attempt has no verdict, and no follower has a lease on it.
_FREE = """
SELECT attempt.id FROM jobs_attempt AS attempt
JOIN jobs_cluster AS cluster ON cluster.id = attempt.cluster_id
LEFT JOIN jobs_followlease AS lease ON lease.attempt_id = attempt.id
WHERE attempt.ended_at IS NULL AND cluster.status = 'UP'
AND (cluster.backend_name = ANY(%s) AND attempt.carrier <> 'push'
     OR cluster.backend_name = ANY(%s) AND attempt.carrier = 'pull')
AND attempt.id <> ALL(%s)
AND (lease.attempt_id IS NULL OR lease.expires_at < clock_timestamp())
ORDER BY attempt.id LIMIT %s
"""
_WANTED = """
SELECT id FROM jobs_attempt
WHERE id = ANY(%s) AND ended_at IS NULL AND carrier <> 'push'
"""
_TAKE = """
INSERT INTO jobs_followlease (attempt_id, owner, expires_at)
VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (attempt_id) DO UPDATE SET owner = EXCLUDED.owner, expires_at = EXCLUDED.expires_at
WHERE jobs_followlease.expires_at < clock_timestamp()
RETURNING attempt_id
"""
# An expired lease is not renewed: another follower may have seen that attempt as free already.
_RENEW = """
UPDATE jobs_followlease SET expires_at = clock_timestamp() + make_interval(secs => %s)
WHERE owner = %s AND attempt_id = ANY(%s) AND expires_at >= clock_timestamp()
RETURNING attempt_id
"""


class Backends(NamedTuple):
    """The names of backends whose nodes never push, and of those whose nodes may push or not."""

    pulled: Collection[str]
    either: Collection[str]


def free(backends: Backends, at_most: int, *, besides: Collection[int] = ()) -> list[int]:
    """List at most `at_most` attempts that need a follower and have none, without `besides`."""
    names = [list(backends.pulled), list(backends.either)]
    return _ids(_FREE, [*names, list(besides), at_most])


def wanted(attempt_ids: Collection[int]) -> set[int]:
    """Return the attempts that have no verdict and whose runners do not push."""
    return set(_ids(_WANTED, [list(attempt_ids)]))


def take(attempt_id: int, owner: str) -> bool:
    """Whether `owner` took the lease on the attempt; of several owners one succeeds."""
    return bool(_ids(_TAKE, [attempt_id, owner, LEASE_S]))


def renew(attempt_ids: Collection[int], owner: str) -> set[int]:
    """Renew the leases that `owner` still has, and return their attempts."""
    return set(_ids(_RENEW, [LEASE_S, owner, list(attempt_ids)]))


def release(attempt_ids: Collection[int], owner: str) -> None:
    """Let others have them at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM jobs_followlease WHERE owner = %s AND attempt_id = ANY(%s)",
            [owner, list(attempt_ids)],
        )


def _ids(statement: str, parameters: list[Any]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return [row[0] for row in cursor.fetchall()]
