"""The roles of the portal's own processes. Each runs in a fork, so nothing starts early."""

from __future__ import annotations

import importlib
import io
import os
import signal
import socket
import warnings
from typing import Any

import uvicorn
from celery.apps.beat import Beat
from celery.apps.worker import Worker
from celery.exceptions import SecurityWarning
from django.conf import settings
from django.core.management import call_command, get_commands

from monarch_portal.celery import app
from monarch_portal.gateway_upgrade import GatewayUpgrade

# A browser's live stream stays open for ever; this is how long web waits for it when it stops.
WEB_GRACE_S = 3

# Imported before the forks, so that they share it.
PRELOADED = (
    "celery.concurrency.thread",
    "celery.worker.consumer",
    "celery.worker.strategy",
    "jobs.gateway.process",
    "jobs.tasks",
    "kombu.transport.redis",
    "monarch_portal.asgi",
    "psycopg_pool",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.h11_impl",
)


def preload() -> None:
    """Import what the roles need. Opens no connection and starts no thread."""
    for module in (*PRELOADED, settings.ROOT_URLCONF):
        importlib.import_module(module)


def prepare() -> str:
    """Bring the database up to date, make the first user. Returns a sign-in link's path."""
    call_command("prepare")
    output = io.StringIO()
    call_command("sign_in_link", path_only=True, stdout=output)
    return output.getvalue().strip()


def web(listener: socket.socket) -> None:
    """Serve pages and REST on `listener`."""
    config = uvicorn.Config(
        "monarch_portal.asgi:application",
        # The other one takes headers without end.
        http="h11",
        log_config=None,
        access_log=False,
        lifespan="on",
        # No stream passes this process: connections of the gateway are handed to it.
        ws=GatewayUpgrade,
        # The proxies that may name the origin of a request: none, unless listed. A job could, else.
        proxy_headers=bool(os.environ.get("FORWARDED_ALLOW_IPS")),
        server_header=False,
        timeout_graceful_shutdown=WEB_GRACE_S,
    )
    uvicorn.Server(config).run(sockets=[listener])


def worker() -> None:
    """Run Celery tasks in threads."""
    # As root it must stay root: it starts each job's attempt under a user id of its own.
    warnings.simplefilter("ignore", SecurityWarning)
    without: dict[str, Any] = {
        "without_gossip": True,
        "without_mingle": True,
        "without_heartbeat": True,
    }
    process = Worker(app=app, pool="threads", loglevel="WARNING", quiet=True, **without)
    process.start()
    raise SystemExit(process.exitcode)


def beat() -> None:
    """Send the tick of each reconciler."""
    Beat(app=app, loglevel="WARNING", quiet=True).run()


def gateway() -> None:
    """Join programs outside of jobs with their workers."""
    call_command("gateway")


def follower() -> None:
    """Carry frames from nodes that can't reach the portal."""
    if "follower" in get_commands():
        call_command("follower")
    else:
        signal.pause()
