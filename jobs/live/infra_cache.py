"""Reports of backends on clouds and GPUs, cached in Redis: no page waits for a cloud."""

from __future__ import annotations

import json
import logging
from typing import Any

import redis

from jobs.ground.redis_client import connection

log = logging.getLogger(__name__)

# An answer this old is shown, and requested again while a page is open.
FRESH_S = 60.0
KEPT_S = 24 * 3600
WANTED_S = 30


def keep(backend_name: str, content: dict[str, Any]) -> None:
    """Store an answer. Without Redis there is none to show, and the page shows that."""
    try:
        connection().set(_key(backend_name), json.dumps(content), ex=KEPT_S)
    except redis.RedisError:
        log.warning("infra not kept", extra={"action": "infra_cache"})


def kept(backend_name: str) -> dict[str, Any] | None:
    """Return the last answer, or None."""
    try:
        stored = connection().get(_key(backend_name))
    except redis.RedisError:
        return None
    content: dict[str, Any] | None = json.loads(stored) if isinstance(stored, bytes | str) else None
    return content


def want() -> bool:
    """Note that a page needs the answers; return whether none has for a while."""
    try:
        return bool(connection().set("mportal:infra:wanted", 1, nx=True, ex=WANTED_S))
    except redis.RedisError:
        return False


def is_wanted() -> bool:
    """Whether a page needed the answers recently."""
    try:
        return bool(connection().exists("mportal:infra:wanted"))
    except redis.RedisError:
        return False


def _key(backend_name: str) -> str:
    return f"mportal:infra:of:{backend_name}"
