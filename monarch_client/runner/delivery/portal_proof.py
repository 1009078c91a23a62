"""Require a proof from the server at the portal's address before a token is sent.

Over plain http any process that takes the port would receive the token. The proof is a MAC of a
fresh nonce, keyed with the digest of the token, which the portal stores: the token itself does not
travel. It holds for one connection. Runner, command line, Python client and portal share this.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from monarch_client.runner.base.listening_sockets import is_same_address, sockets_listening_at
from monarch_client.runner.vocabulary.messages import MALFORMED, object_in

if TYPE_CHECKING:
    import socket

PATH = "/api/v1/proof"
NONCE_DIGITS = 32
HOLDER_DIGITS = 16
DRIVER_TOKEN_PREFIX = "mpj_"  # noqa: S105 - a public prefix
_VERSION = "mportal-proof-1"
_LONGEST_ANSWER = 16 * 1024
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NETWORK = Path("/proc/self/ns/net")
_OK, _UNAUTHORIZED, _TOO_MANY = 200, 401, 429
_REDIRECTS = frozenset({301, 302, 307, 308})
_AWAY = frozenset({502, 503, 504})


class UnprovedError(OSError):
    """The server has not proved that it is the portal: send it no token, and ignore its answers."""


class UnknownTokenError(UnprovedError):
    """The server does not know the token, or refuses more attempts, so it gives no proof."""


class PortalAwayError(UnprovedError):
    """A proxy or the portal answered that the portal is unavailable."""


class Origin(NamedTuple):
    """The machine, address, port and user that received the challenge. Part of the proof.

    A client on the same machine uses it to detect a program that relays the challenge.
    """

    machine: str
    address: str
    port: int
    uid: int

    def mac(self, digest: str, nonce: str) -> str:
        """Return the proof: a MAC of the nonce and this origin, keyed with the token's digest."""
        content = "\n".join([_VERSION, nonce, *map(str, self)])
        return hmac.new(digest.encode(), content.encode(), hashlib.sha256).hexdigest()


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token in hex, which the portal stores."""
    return hashlib.sha256(token.encode()).hexdigest()


def holder_of(token: str) -> str:
    """Return the public name of a token, which identifies it to the portal but grants nothing.

    A token of a job's program is derived, not stored, so its name begins with the attempt's id.
    The digits after that keep strangers from guessing which attempts exist.
    """
    digits = digest_of(token)[:HOLDER_DIGITS]
    if not token.startswith(DRIVER_TOKEN_PREFIX):
        return digits
    number = token[len(DRIVER_TOKEN_PREFIX) :].partition("_")[0]
    return f"{DRIVER_TOKEN_PREFIX}{number}_{digits}"


def this_machine() -> str:
    """Return an id of this boot and network namespace; "" if the kernel provides none."""
    try:
        network = os.readlink(str(_NETWORK))
        text = _BOOT_ID.read_text(encoding="ascii") + network
    except OSError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:HOLDER_DIGITS]


def require_proof(connection: http.client.HTTPConnection, base: str, token: str) -> None:
    """Require a proof from the server of an open connection; `base` is the portal's path.

    UnprovedError without a valid proof; OSError or HTTPException if the connection breaks.
    """
    nonce = secrets.token_hex(NONCE_DIGITS // 2)
    query = urlencode({"holder": holder_of(token), "nonce": nonce})
    connection.request("GET", f"{base}{PATH}?{query}")
    response = connection.getresponse()
    body = response.read(_LONGEST_ANSWER)
    location = response.headers.get("Location") or ""
    if response.status in _REDIRECTS and location.startswith("https://"):
        raise UnprovedError("the portal is reached over https:// only")
    if response.status in _AWAY:
        raise PortalAwayError(f"it answers with status {response.status}")
    if response.status in {_UNAUTHORIZED, _TOO_MANY}:
        raise UnknownTokenError("it does not know this token")
    if response.status != _OK:
        raise UnprovedError(f"it gives no proof (status {response.status})")
    if response.will_close:
        raise UnprovedError("it closes each connection after one answer")
    origin = _proved_origin(body, digest_of(token), nonce)
    if _is_passed_on(connection.sock, origin):
        raise UnprovedError(
            "another program passes requests on to the portal, which listens on "
            f"{origin.address} port {origin.port}"
        )


def _proved_origin(body: bytes, digest: str, nonce: str) -> Origin:
    try:
        answer = object_in(body)
        machine, address = str(answer["machine"]), str(answer["address"])
        origin = Origin(machine, address, int(answer["port"]), int(answer["uid"]))
        mac = str(answer["mac"])
    except MALFORMED:
        raise UnprovedError("it gives no proof") from None
    if not hmac.compare_digest(mac.encode(), origin.mac(digest, nonce).encode()):
        raise UnprovedError("its proof is wrong")
    return origin


def _is_passed_on(sock: socket.socket, origin: Origin) -> bool:
    """Whether another user's program on this machine relays the connection to the portal.

    Relays of root, the portal's user and the own user are trusted. From other machines and
    containers relays cannot be detected, and there no stranger can take the portal's own port.
    """
    if not origin.machine or origin.machine != this_machine():
        return False
    address, port = sock.getpeername()[:2]
    # Compare addresses too: a stranger can have the port on ::1 that the portal has on 127.0.0.1.
    if port == origin.port and is_same_address(address, origin.address):
        return False
    owners = {each.uid for each in sockets_listening_at(address, port)}
    return not owners or not owners <= {0, origin.uid, os.geteuid()}
