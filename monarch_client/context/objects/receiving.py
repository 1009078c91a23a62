"""One object on its way from another host: in parts that are read there, or as bytes."""

from __future__ import annotations

import logging
import socket
from typing import TypeVar

import msgspec

from monarch_client.context.objects import frames, transfers
from monarch_client.context.objects.remote_memory import PART_BYTES, Reads, RemoteMemoryError

log = logging.getLogger("monarch_client.context")
_A = TypeVar("_A", frames.Contents, frames.Done)


class Receiver:
    """The reader of one object on a connection to the host that has it.

    `reads` reads the memory of that host; without it, the bytes arrive over the connection.
    """

    def __init__(
        self, connection: socket.socket, request: frames.Fetch, reads: Reads | None
    ) -> None:
        self._connection = connection
        self._request = request
        self._answer = frames.Contents(0)
        self.reads = reads

    def begin(self) -> int:
        """Request the object; return its size. OSError: the host does not answer."""
        self._ask(0)
        return self._answer.size

    def fill(self, target: memoryview) -> None:
        """Fill memory with the object. What cannot be read goes on over the connection.

        OSError: the host was lost.
        """
        done = 0
        while self._answer.handle and self.reads is not None:
            part = target[done : done + PART_BYTES]
            try:
                self.reads.read(self._answer.handle, part, self._connection)
                done += part.nbytes
            except RemoteMemoryError as error:
                log.warning("Objects are fetched over TCP from now on: %s", error)
                self.reads = None
            # The answer is the proof that the offer lasted as long as the read.
            if done == target.nbytes:
                self._send(frames.Release(), frames.Done)
                return
            self._ask(done)
        transfers.receive(self._connection, target[done:])

    def _ask(self, start: int) -> None:
        """Request what follows `start`."""
        has_reads = self.reads is not None
        request = msgspec.structs.replace(self._request, start=start, takes_offers=has_reads)
        self._answer = self._send(request, frames.Contents)

    def _send(self, request: frames.TransferRequest, kind: type[_A]) -> _A:
        self._connection.sendall(frames.to_frame(request))
        body = frames.receive_frame(self._connection)
        if body is None:
            raise ConnectionResetError("it has closed the connection")
        return frames.answer_of(body, kind)
