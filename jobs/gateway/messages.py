"""The messages that heads, sessions and browsers send to the gateway, in the types of their fields.

A message on a control stream is a JSON object with the field `op`; docs/explanation/gateway.md
lists them. Fields and messages that are not known here are ignored: either end may be newer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from jobs.ground.messages import STORABLE, Decoder, MalformedMessageError, Number, Text

CertificateRequest = Annotated[str, Meta(max_length=16 * 1024, pattern=STORABLE)]
Side = Annotated[int, Meta(ge=1, le=10_000)]


class Message(Struct, tag_field="op", kw_only=True):
    """A message of a control stream."""

    @property
    def op(self) -> str:
        """The kind of the message."""
        return str(self.__struct_config__.tag)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the message, without `op`."""
        return {name: value for name, value in msgspec.to_builtins(self).items() if name != "op"}


class HeadNode(Struct):
    """A node of a head's attempt."""

    rank: Number
    host: Text = ""


class HeadWorker(HeadNode):
    """A worker of a head's attempt."""

    address: Text = ""


class Hello(Message, tag="hello"):
    """The first message of a head: what its attempt consists of."""

    attempt: Number = 0
    python: Text = ""
    torchmonarch: Text = ""
    workers: list[HeadWorker] = []
    nodes: list[HeadNode] = []
    meshes: dict[Text, list[Number]] = {}


class Signed(Message, tag="signed"):
    """A head's answer to `sign`: the certificates, and their end in seconds since 1970."""

    id: Number
    leaf: Text
    ca: Text = ""
    not_after: Number = 0


class Refused(Message, tag="refused"):
    """A head's answer to `sign` if it does not sign."""

    id: Number
    detail: Text = ""


class LostHosts(Message, tag="lost_hosts"):
    """A head's report of the ranks whose hosts are lost, for all sessions."""

    ranks: list[Number]


class DialFailed(Message, tag="dial_failed"):
    """A head's report of a link that it could not open."""

    session: Number
    link: Number
    generation: Number
    detail: Text = ""


class SessionLost(Message, tag="session_lost"):
    """A head's report of a session that it gives up."""

    session: Number
    detail: Text = ""


class Link(Message, tag="link"):
    """A session's request for a link; a later generation replaces the one before."""

    link: Number
    generation: Number
    rank: Number = 0
    kind: Text = "worker"


class Sign(Message, tag="sign"):
    """A session's request for a signature."""

    id: Number
    csr: CertificateRequest


class Close(Message, tag="close"):
    """The end of a session, by its program."""


class Size(Struct, kw_only=True):
    """The size of a browser's terminal. The first message names the rank as well."""

    rank: Number = 0
    rows: Side = 24
    columns: Side = 80


FROM_HEADS = Hello | Signed | Refused | LostHosts | DialFailed | SessionLost
FROM_SESSIONS = Link | Sign | Close

decode_size = Decoder(Size).decode


class RefusedMessageError(MalformedMessageError):
    """A message of a known kind with fields that do not fit; `answer` has the fields of a reply."""

    def __init__(self, envelope: _Envelope, why: str) -> None:
        super().__init__(why)
        self.answer: dict[str, Any] = {
            name: value
            for name in ("id", "link", "generation")
            if type(value := getattr(envelope, name)) is int
        }
        self.answer["detail"] = f"The message {envelope.op} is malformed: {why}"


class _Envelope(Struct):
    """The fields that name the kind of a message and the request to which an answer belongs."""

    op: str
    id: Any = None
    link: Any = None
    generation: Any = None


_decode_envelope = Decoder(_Envelope).decode


class StreamDecoder:
    """A decoder of the messages of one end."""

    def __init__(self, kinds: Any) -> None:
        self._decoders: Mapping[str, Decoder[Any]] = {
            kind.__struct_config__.tag: Decoder(kind) for kind in kinds.__args__
        }

    def decode(self, text: str | bytes) -> Any:
        """Return a message; None for one of an unknown kind.

        RefusedMessageError: its fields do not fit. MalformedMessageError: it is no message at all.
        """
        envelope = _decode_envelope(text)
        decoder = self._decoders.get(envelope.op)
        try:
            return decoder.decode(text) if decoder is not None else None
        except MalformedMessageError as error:
            raise RefusedMessageError(envelope, str(error)) from error


decode_from_head = StreamDecoder(FROM_HEADS).decode
decode_from_session = StreamDecoder(FROM_SESSIONS).decode
