"""Find the portal's address, and open connections to it that are safe for a token."""

from __future__ import annotations

import http.client
import json
import os
import stat
from pathlib import Path
from urllib.parse import urlsplit

from monarch_client.runner.delivery.portal_proof import require_proof

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def portal_url(configured: str, file: str | None) -> str:
    """Return the portal's address: that in its file, else the configured one."""
    return _url_in_file(file) or configured


def open_connection(url: str, token: str, timeout_s: float) -> http.client.HTTPConnection:
    """Open a connection to the portal: a certificate (https) or a MAC proves its identity.

    An unproved server gets no token, and its answers are ignored.
    """
    parts = urlsplit(url)
    host = parts.hostname or "localhost"
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout_s)
    connection = http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
    connection.connect()
    # It must never reconnect by itself: that connection would be unproved.
    connection.auto_open = 0
    try:
        require_proof(connection, parts.path, token)
    except (OSError, http.client.HTTPException):
        connection.close()
        raise
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
