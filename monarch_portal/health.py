"""Two questions of an orchestrator: does this process live, and can it do its work now?"""

from __future__ import annotations

import logging
from collections.abc import Callable

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from jobs.disk_space import shortage

log = logging.getLogger(__name__)


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 when database and Redis answer, 503 otherwise; the body tells which does not.

    A disk that is nearly full is told, and is no reason to send nobody here: all but new work goes
    on.
    """
    missing = unavailable_parts()
    body = {name: "unavailable" if name in missing else "ok" for name in PARTS}
    body["disk"] = "nearly full" if shortage() else "ok"
    return JsonResponse(body, status=503 if missing else 200)


def unavailable_parts() -> list[str]:
    """What this process needs and does not reach now."""
    return [name for name, answers in PARTS.items() if not answers()]


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        log.warning("database is away", extra={"action": "not_ready"}, exc_info=True)
        return False
    return True


def _redis_answers() -> bool:
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)
    try:
        return bool(client.ping())
    except redis.RedisError:
        log.warning("redis is away", extra={"action": "not_ready"}, exc_info=True)
        return False
    finally:
        client.close()


PARTS: dict[str, Callable[[], bool]] = {"database": _database_answers, "redis": _redis_answers}
