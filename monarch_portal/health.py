"""Two questions of an orchestrator: does this process live, and can it do its work now?"""

from __future__ import annotations

import logging
from collections.abc import Callable

import redis
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from jobs.actions.accounts.releases import about_newer_database
from jobs.ground.disk_space import shortage

log = logging.getLogger(__name__)


@csrf_exempt
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 as long as the process is alive."""
    return HttpResponse("ok\n", content_type="text/plain")


@csrf_exempt
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 when database and Redis answer and fit this release, else 503 with the reasons.

    A nearly full disk is reported with status 200: everything except new work goes on.
    """
    found = faults()
    body = {**dict.fromkeys(PARTS, "ok"), **found}
    body["disk"] = "nearly full" if shortage() else "ok"
    return JsonResponse(body, status=503 if found else 200)


def faults() -> dict[str, str]:
    """Return what is wrong with each part that this process needs and cannot work with now."""
    return {name: fault for name, look in PARTS.items() if (fault := look())}


def _about_database() -> str:
    try:
        return about_newer_database()
    except DatabaseError:
        log.warning("database is away", extra={"action": "not_ready"}, exc_info=True)
        return "unavailable"


def _about_redis() -> str:
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)
    try:
        return "" if client.ping() else "unavailable"
    except redis.RedisError:
        log.warning("redis is away", extra={"action": "not_ready"}, exc_info=True)
        return "unavailable"
    finally:
        client.close()


PARTS: dict[str, Callable[[], str]] = {"database": _about_database, "redis": _about_redis}
