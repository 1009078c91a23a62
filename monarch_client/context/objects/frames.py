"""The requests of processes to their host's object store, and its answers.

A frame is a 32-bit length and MessagePack. The answer to `Hello` carries the arena's descriptor.
Each request gets one answer, in order.
"""

from __future__ import annotations

import socket
import struct
from typing import TypeVar

import msgspec

from monarch_client.context.objects.errors import (
    ObjectNotFoundError,
    ObjectStoreError,
    ObjectUnreachableError,
    StoreFullError,
)

_LENGTH = struct.Struct("<I")
LENGTH_BYTES = _LENGTH.size


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The first frame of a connection."""


class Create(msgspec.Struct, frozen=True, tag=True):
    """Memory for an object that the sender is going to write; see `HostStore.create`."""

    object_id: bytes
    size: int
    owner: int


class Seal(msgspec.Struct, frozen=True, tag=True):
    """The object is written."""

    object_id: bytes


class Abort(msgspec.Struct, frozen=True, tag=True):
    """The object cannot be written."""

    object_id: bytes


class Pin(msgspec.Struct, frozen=True, tag=True):
    """Keep an object in memory while the sender uses it; see `HostStore.pin`."""

    object_id: bytes
    source: str = ""


class Unpin(msgspec.Struct, frozen=True, tag=True):
    """The sender no longer uses objects that it has pinned, so many times each."""

    counts: dict[bytes, int]


class ChangeReferences(msgspec.Struct, frozen=True, tag=True):
    """A change of the sender's numbers of references."""

    changes: dict[bytes, int]


class Fetch(msgspec.Struct, frozen=True, tag=True):
    """The request of another host, whose address is `reader`, for an object from an offset."""

    secret: str
    object_id: bytes
    start: int = 0
    reader: str = ""
    # Whether the answer may be an offer: see `remote_memory.py`.
    takes_offers: bool = False


class Release(msgspec.Struct, frozen=True, tag=True):
    """Another host has read what it was offered."""


class Welcome(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Hello`."""

    capacity: int


class Created(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Create`. Without an offset: the object exists."""

    offset: int | None


class Pinned(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Pin`."""

    offset: int
    size: int


class Contents(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Fetch`: the size of the object, whose bytes follow.

    With a handle: the offer of its next part, and no bytes.
    """

    size: int
    handle: bytes = b""


class Done(msgspec.Struct, frozen=True, tag=True):
    """The answer to requests without a result."""


class Full(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request that failed with StoreFullError."""

    requested: int
    limit: int
    in_use: int
    reason: str


class NotFound(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request that failed with ObjectNotFoundError."""

    object_id: bytes


class Unreachable(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request that failed with ObjectUnreachableError."""

    object_id: bytes
    source: str
    reason: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request that failed in another way."""

    message: str


Request = Hello | Create | Seal | Abort | Pin | Unpin | ChangeReferences
TransferRequest = Fetch | Release
Answer = Welcome | Created | Pinned | Contents | Done | Full | NotFound | Unreachable | Failed

_A = TypeVar("_A", bound=Answer)

_encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_transfer_request = msgspec.msgpack.Decoder(TransferRequest).decode
_decode_answer = msgspec.msgpack.Decoder(Answer).decode


def to_frame(message: Request | TransferRequest | Answer) -> bytes:
    """Return the bytes of a message on the socket."""
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


def receive_frame(connection: socket.socket) -> bytes | None:
    """Return the body of the next frame; None: the connection has ended."""
    header = _receive_exactly(connection, LENGTH_BYTES)
    if header is None:
        return None
    return _receive_exactly(connection, _LENGTH.unpack(header)[0])


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    received = bytearray()
    while len(received) < size:
        data = connection.recv(size - len(received))
        if not data:
            return None
        received += data
    return bytes(received)


def to_answer(error: ObjectStoreError) -> Answer:
    """Return the answer that carries an error."""
    if isinstance(error, StoreFullError):
        return Full(error.requested, error.limit, error.in_use, error.reason)
    if isinstance(error, ObjectNotFoundError):
        return NotFound(error.object_id)
    if isinstance(error, ObjectUnreachableError):
        return Unreachable(error.object_id, error.source, error.reason)
    return Failed(str(error))


def answer_of(body: bytes, kind: type[_A]) -> _A:
    """Return the answer in a frame, which is of this kind, or raise the error that it carries."""
    match _decode_answer(body):
        case Full(requested, limit, in_use, reason):
            raise StoreFullError(requested, limit, in_use, reason)
        case NotFound(object_id):
            raise ObjectNotFoundError(object_id)
        case Unreachable(object_id, source, reason):
            raise ObjectUnreachableError(object_id, source, reason)
        case Failed(message):
            raise ObjectStoreError(message)
        case answer if isinstance(answer, kind):
            return answer
    raise ObjectStoreError("The host's object store is of another version.")
