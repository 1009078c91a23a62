"""Require a proof from the portal before a token is sent over plain http.

httpx reports each connection that it opens, before it sends a request there.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx

from monarch_client.errors import NotSignedInError, UnprovedPortalError
from monarch_client.rest.refusals import sign_in_advice
from monarch_client.runner.delivery.portal_proof import (
    PortalAwayError,
    UnknownTokenError,
    UnprovedError,
    require_proof,
)

_OPENED = "connection.connect_tcp.complete"
_OPENING = "connection.connect_tcp.started"
_ANY_OPENING = re.compile(r"\w+\.connect_\w+\.started")
_TLS_LOOK_S = 3.0


class PortalProof:
    """A check of each new connection to `url`; use it as the `trace` extension of requests."""

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        parts = urlsplit(url)
        self._url = url
        self._is_needed = parts.scheme == "http" and bool(token)
        self._host = parts.hostname or ""
        self._port = parts.port or http.client.HTTP_PORT
        self._path = parts.path
        self._token = token
        self._timeout_s = timeout_s
        self._base = parts.path

    def require(self, request: httpx.Request) -> None:
        """Require a proof on each connection that this request opens: a hook of httpx."""
        if self._is_needed:
            request.extensions["trace"] = self._prove_connection

    def _prove_connection(self, event: str, info: dict[str, Any]) -> None:
        """Require the proof on a connection that httpcore has opened, before it is used."""
        if event == _OPENING:
            # Where this connection leads to an http proxy, the proxy expects absolute URLs.
            is_direct = (info["host"], info["port"]) == (self._host, self._port)
            self._base = self._path if is_direct else self._url
        elif event == _OPENED:
            stream = info["return_value"]
            try:
                self._prove(stream.get_extra_info("socket"))
            except BaseException:
                stream.close()
                raise
        elif _ANY_OPENING.fullmatch(event):
            # Refuse connections of unknown kinds: through a SOCKS proxy no proof is possible.
            raise UnprovedPortalError(
                f"{self._url} is reached through a SOCKS proxy, so that it can not be proved to be "
                "your portal. Your token was not sent. Use https://, or add the host to NO_PROXY."
            )

    def _prove(self, sock: socket.socket) -> None:
        sock.settimeout(self._timeout_s)
        connection = http.client.HTTPConnection(self._host, self._port)
        connection.sock = sock
        connection.auto_open = 0
        try:
            require_proof(connection, self._base, self._token)
        except PortalAwayError as error:
            raise httpx.ConnectError(str(error)) from error
        except UnknownTokenError as error:
            raise NotSignedInError(
                f"The portal at {self._url} does not know this token: it is unknown, revoked or "
                "expired, or another portal has this address now." + sign_in_advice()
            ) from error
        except (UnprovedError, http.client.HTTPException) as error:
            self._refuse(error)
        except OSError as error:
            self._refuse_tls()
            raise httpx.ConnectError(str(error)) from error

    def _refuse(self, error: Exception) -> NoReturn:
        self._refuse_tls()
        why = str(error) if isinstance(error, UnprovedError) else "it does not speak http"
        raise UnprovedPortalError(
            f"What answers at {self._url} is not proved to be your portal: {why}. Your token was "
            "not sent. Check the address, and that a portal of this version runs there; "
            "`make env` prints the address of one on this machine."
        ) from error

    def _refuse_tls(self) -> None:
        if _speaks_tls(self._host, self._port):
            address = self._url.replace("http://", "https://", 1)
            raise UnprovedPortalError(f"{self._url} speaks https: use {address}.")


def _speaks_tls(host: str, port: int) -> bool:
    """Whether a server at that address speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout=_TLS_LOOK_S) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return True
    except (OSError, ValueError):
        return False
