"""Mutual TLS with a worker or node, over the messages of a link: the portal joins ciphertext only.

The link process does this and Monarch does not, since Monarch reads its certificate once for all
reconnects of a link, and this session's are renewed.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

from websockets.asyncio.client import ClientConnection

from monarch_client.gateway.certificates import CA, KEY, LEAF

# Every worker's certificate has this name beside its own addresses.
_NAME = "127.0.0.1"
_PIECE = 256 * 1024


class TlsStream:
    """A TLS client on a link. Used by two tasks: one that sends, one that receives."""

    def __init__(self, remote: ClientConnection, folder: Path) -> None:
        context = ssl.create_default_context(cafile=str(folder / CA))
        # Certificates that nodes make with the openssl command lack what RFC 5280 wants.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.load_cert_chain(folder / LEAF, folder / KEY)
        self._remote = remote
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=_NAME)

    async def handshake(self) -> None:
        """Exchange keys with the worker. ssl.SSLError: it is none of this job's, or refuses us."""
        while not self._has_agreed():
            await self._exchange()
        await self._flush()

    async def send(self, data: bytes) -> None:
        """Encrypt and send."""
        self._tls.write(data)
        await self._flush()

    async def receive(self) -> bytes:
        """Receive and decrypt; b"" at the end."""
        while True:
            data, is_over = self._decrypted()
            if data or is_over:
                return data
            await self._exchange()

    def abort(self) -> None:
        """Close the link at once."""
        self._remote.transport.abort()

    def _has_agreed(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _decrypted(self) -> tuple[bytes, bool]:
        """Return all that is decrypted by now, and whether the worker has closed the stream."""
        pieces = []
        with suppress(ssl.SSLWantReadError):
            # One record of TLS, 16 KiB at most, a call.
            while piece := self._tls.read(_PIECE):
                pieces.append(piece)
            return b"".join(pieces), True
        return b"".join(pieces), False

    async def _exchange(self) -> None:
        """Send what TLS wants to answer, and wait for a message."""
        await self._flush()
        self._incoming.write(await self._remote.recv(decode=False))

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._remote.send(self._outgoing.read())
