"""TLS between the nodes of an attempt: both sides present a leaf of its authority.

A module of its own, since importing ssl takes time: import it where a connection needs it.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def server_context(certificates: Path) -> ssl.SSLContext:
    """Return the context of a server that accepts only clients with a leaf of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    return _with_leaf(context, certificates)


def client_context(certificates: Path) -> ssl.SSLContext:
    """Return the context of a client: the server must prove that the address is its own."""
    return _with_leaf(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificates)


def _with_leaf(context: ssl.SSLContext, certificates: Path) -> ssl.SSLContext:
    context.load_cert_chain(str(certificates / "leaf.crt"), str(certificates / "leaf.key"))
    context.load_verify_locations(str(certificates / "ca.crt"))
    return context
