"""WebSocket requests to web: those of the gateway are handed to its process, others are refused."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from django.conf import settings

from jobs.gateway.handover import hand_over

log = logging.getLogger(__name__)

_PREFIX = "/gateway/"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_AWAY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


class GatewayUpgrade(asyncio.Protocol):
    """uvicorn's protocol of an upgraded connection: it has the request's head, and nothing else."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass the connection on, with its head; uvicorn calls this once."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        transport.pause_reading()
        if not is_of_gateway(data):
            transport.write(_NOT_FOUND)
        else:
            connection = transport.get_extra_info("socket")
            try:
                hand_over(settings.MPORTAL_GATEWAY_SOCKET, connection.fileno(), data)
            except OSError as error:
                log.warning("no gateway: %s", error, extra={"action": "handover"})
                transport.write(_AWAY)
        transport.close()


def is_of_gateway(head: bytes) -> bool:
    """Whether the first line of a request names a path of the gateway."""
    target = head.split(b" ", 2)[1].decode("latin-1")
    path = target.removeprefix(settings.FORCE_SCRIPT_NAME or "")
    return path.startswith(_PREFIX)
