"""One HTTP request to the portal: the token, safe retries, and errors as exceptions."""

from __future__ import annotations

import itertools
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from monarch_client.errors import NotSignedInError, UnexpectedAnswerError, UnreachableError
from monarch_client.rest.proving import PortalProof
from monarch_client.rest.refusals import is_problem, refusal
from monarch_client.runner.base.retry import Retry
from monarch_client.version import __version__

API = "/api/v1"
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
# A restart of the portal is over before so many tries have failed.
QUIET_TRIES = 3

# What a proxy answers while the portal restarts. The portal's own errors are problem+json: they
# say when to come back where that helps.
_AWAY = frozenset({502, 503, 504})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_IN_A_JOB = (
    "A job submits child jobs only where its nodes reach the portal; where the portal fetches from "
    "them alone, they do not."
)
# An address without http://: retrying does not help.
_NEVER_GOOD = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
# OpenSSL's error texts, by version, for an answer that is not TLS.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_TOKEN = re.compile(r"[!-~]+")


class Connection:
    """A connection to one portal as one user. Use it as a context manager, or `close()` it.

    `on_away` is called, once a request, when its portal stays away and it is tried again.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = 30.0,
        patience_s: float = 20.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url.strip().rstrip("/")
        self.sleep = sleep
        self.on_away: Callable[[str], None] | None = None
        self._patience_s = patience_s
        headers = {"User-Agent": f"mportal/{__version__}"}
        if token := usable_token(token):
            headers["Authorization"] = f"Bearer {token}"
        try:
            proof = PortalProof(self.url, token, timeout_s)
            self._http = httpx.Client(
                base_url=self.url + API,
                headers=headers,
                timeout=timeout_s,
                transport=transport,
                event_hooks={"request": [proof.require]},
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise UnreachableError(f"{self.url} is not an address of a portal: {error}.") from error

    def close(self) -> None:
        """Give the sockets back."""
        self._http.close()

    def request(
        self, method: str, path: str, *, repeatable: bool | None = None, **options: Any
    ) -> Any:
        """Send a request; return the decoded JSON of a good answer, None for an empty one.

        A request that may be repeated (by default GET and DELETE) is repeated for as long as
        `patience_s`, while the portal is away; others only when they cannot have arrived.
        """
        if repeatable is None:
            repeatable = method in {"GET", "DELETE"}
        response = self._send_patiently(method, path, options, repeatable=repeatable)
        if not response.is_success:
            raise refusal(response)
        return _json(response) if response.content else None

    @contextmanager
    def stream(
        self, path: str, *, headers: Mapping[str, str], read_timeout_s: float
    ) -> Iterator[httpx.Response]:
        """Open a response whose body is still arriving; retries are left to the caller."""
        timeout = httpx.Timeout(30.0, read=read_timeout_s)
        with self._http.stream("GET", path, headers=dict(headers), timeout=timeout) as response:
            if not response.is_success:
                response.read()
                raise refusal(response)
            yield response

    def _send_patiently(
        self, method: str, path: str, options: dict[str, Any], *, repeatable: bool
    ) -> httpx.Response:
        retry = pauses(limit_s=self._patience_s)
        for tries in itertools.count(1):
            last_chance = retry.is_over
            try:
                response = self._send(method, path, options)
            except _NEVER_GOOD as error:
                raise unreachable(self.url, error) from error
            except httpx.TransportError as error:
                if (
                    last_chance
                    or _has_no_tls(error)
                    or not (repeatable or isinstance(error, _NEVER_SENT))
                ):
                    raise unreachable(self.url, error) from error
            else:
                if last_chance or not (repeatable and is_away(response)):
                    return response
            if tries == QUIET_TRIES and self.on_away:
                self.on_away(f"The portal at {self.url} does not answer; trying again ...")
            self.sleep(retry.next_pause_s())
        raise AssertionError  # the count never ends

    def _send(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        # A body that is read once must be opened anew for each try.
        if callable(content := options.get("content")):
            options = {**options, "content": content()}
        return self._http.request(method, path, **options)


def pauses(limit_s: float = math.inf) -> Retry:
    """Return the pauses between the tries of a request, for as long as `limit_s`."""
    return Retry(FIRST_PAUSE_S, LONGEST_PAUSE_S, limit_s=limit_s)


def is_away(response: httpx.Response) -> bool:
    """Whether the portal, or a part that it needs, is not there just now."""
    if response.status_code not in _AWAY:
        return False
    return not is_problem(response) or "Retry-After" in response.headers


def usable_token(token: str) -> str:
    """Return the token without surrounding white space. NotSignedInError if it is malformed.

    The message never holds the token, since it may end in a log.
    """
    stripped = token.strip()
    if stripped and not _TOKEN.fullmatch(stripped):
        raise NotSignedInError(
            "The token holds a space, a line break or another character that no token has. Copy it "
            "again: one line, without quotes or spaces."
        )
    return stripped


def _has_no_tls(error: Exception) -> bool:
    """Whether https was used for an http server, which retrying does not fix."""
    return any(word in str(error) for word in _NO_TLS)


def unreachable(url: str, error: Exception) -> UnreachableError:
    """Return the error for a portal that cannot be reached."""
    if url.startswith("https://") and _has_no_tls(error):
        plain = url.replace("https://", "http://", 1)
        return UnreachableError(f"{url} does not speak https. If it is the portal, use {plain}.")
    reason = str(error).rstrip(".") or type(error).__name__
    message = f"Cannot reach the portal at {url}: {reason}."
    return UnreachableError(
        f"{message} {_IN_A_JOB}" if os.environ.get("MPORTAL_JOB_ID") else message
    )


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        raise UnexpectedAnswerError(
            f"{response.request.url} did not answer in JSON: is this the portal's address?"
        ) from None
