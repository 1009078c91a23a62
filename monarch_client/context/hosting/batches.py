"""Batches of operations and reports between a driver and a host agent."""

from __future__ import annotations

import msgspec

# Operations of the driver.
FORK, SEND, CONTROL, END, KILL, REPLY, DISCONNECT, CLOSE = range(8)
# Of these, those about the object store. The data of the first three is the id of an object.
ADOPT, DISCARD, FORGET_COPY, HOLDER_ENDED, HOSTS, READ, GIVE = range(8, 15)
# The summary of the context, for the runner of the host.
SUMMARY = 15
# Reports of the agent. Each batch, an empty one too, is a sign of life.
CALLS, ENDED, REQUEST, DISCONNECTED, CLOSED, WANTED, PART = range(7)

# What it is, the number of an executor, a connection or a part of an object, and its data.
Operation = tuple[int, int, bytes]

BEAT_S = 0.5
# A driver without a sign of life for so long is lost to an agent, and the reverse. Within the job:
# see `reach` for other drivers.
AGENT_WAITS_S = 8.0
DRIVER_WAITS_S = 3.0
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[Operation]] = msgspec.msgpack.Decoder(list[Operation])


class Description(msgspec.Struct):
    """The resources of a host, as its agent finds them."""

    name: str
    amounts: dict[str, int]
    gpus: list[str]
    # For the transfers of objects; "": other hosts cannot connect to it.
    address: str = ""
    # Whether a runner reads the summaries of contexts there.
    takes_summaries: bool = False


class AgentSettings(msgspec.Struct):
    """The settings of an agent: of its object store, and the secret that hosts share.

    `object_transport`: see `rdma.Transport`.
    """

    secret: str
    object_store_bytes: int | None = None
    spill_directory: str | None = None
    object_transport: str = "auto"
    # How long the driver may be silent.
    driver_silence_s: float = AGENT_WAITS_S


def encoded(operations: list[Operation]) -> bytes:
    """Encode a batch."""
    return _encoder.encode(operations)


def decoded(data: bytes) -> list[Operation]:
    """Decode a batch."""
    return _decoder.decode(data)


class Silence:
    """The time since the last sign of life, without the time in which this process slept itself."""

    def __init__(self, now: float) -> None:
        self._heard = self._checked = now

    def hear(self, now: float) -> None:
        """Note a sign of life."""
        self._heard = now

    def lasts(self, now: float) -> float:
        """Return how long there was none. Called every `BEAT_S`: what is longer was sleep."""
        slept = max(0.0, now - self._checked - 2 * BEAT_S)
        self._checked = now
        self._heard += slept
        return now - self._heard
