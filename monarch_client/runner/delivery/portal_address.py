"""Find the portal's address, and open connections to it that are safe for a token."""

from __future__ import annotations

import base64
import http.client
import json
import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from monarch_client.runner.delivery.portal_proof import require_proof

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def portal_url(configured: str, file: str | None) -> str:
    """Return the portal's address: that in its file, else the configured one."""
    return _url_in_file(file) or configured


def open_connection(
    url: str, token: str, timeout_s: float, proxy: str | None = None
) -> http.client.HTTPConnection:
    """Open a connection to the portal: a certificate (https) or a MAC proves its identity.

    An unproved server gets no token, and its answers are ignored. `proxy`: the address of an http
    proxy that connects to a portal over http.
    """
    parts = urlsplit(url)
    host = parts.hostname or "localhost"
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout_s)
    connection = _through(proxy, host, parts.port, timeout_s)
    connection.connect()
    # It must never reconnect by itself: that connection would be unproved.
    connection.auto_open = 0
    try:
        require_proof(connection, parts.path, token)
    except (OSError, http.client.HTTPException):
        connection.close()
        raise
    return connection


def _through(
    proxy: str | None, host: str, port: int | None, timeout_s: float
) -> http.client.HTTPConnection:
    """Return a connection to a host, in a tunnel through the proxy if there is one."""
    if proxy is None:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    parts = urlsplit(proxy)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    headers = {}
    if parts.username:
        given = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        basic = base64.b64encode(given.encode()).decode()
        headers["Proxy-Authorization"] = f"Basic {basic}"
    connection.set_tunnel(host, port or http.client.HTTP_PORT, headers)
    return connection


def _url_in_file(path: str | None) -> str | None:
    """Return the address in the portal's file, if only root or our user can have written it.

    As root the portal writes it; else portal and runners are one user.
    """
    if path is None:
        return None
    try:
        with Path(path).open(encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            if found.st_uid not in {0, os.geteuid()} or found.st_mode & _WRITABLE_BY_OTHERS:
                return None
            return str(json.load(file)["url"]).rstrip("/")
    except (OSError, ValueError, KeyError, TypeError):
        return None
