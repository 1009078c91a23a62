"""Messages between the driver, the zygote, executors and tasks, and their frames on Unix sockets.

All processes belong to one user and run that user's code: nothing here protects one from another.
"""

from __future__ import annotations

import socket
import struct
from typing import Generic, TypeVar

import msgspec

from monarch_client.context.values import LARGEST_INLINE, Payload

_LENGTH = struct.Struct("<Q")
_RECEIVED_AT_ONCE = 1 << 18
_Message = TypeVar("_Message")
_encoder = msgspec.msgpack.Encoder()


class Call(msgspec.Struct, array_like=True, tag="call"):
    """A task, or a call of an actor, as its caller made it. `id` is that of its result.

    `code` is a pickled function of `code_bytes`; a large one is an object in the store. `args` is
    the pickled pair of arguments; `places` says which of them are references: positions,
    or names. Their objects are `needs`. `holds` are the references inside other arguments. `parent`
    is the call that made it, or empty: the driver did.
    """

    id: bytes
    name: str
    digest: bytes
    code: bytes
    args: Payload
    places: list[int | str] = []
    needs: list[bytes] = []
    holds: list[bytes] = []
    shape: list[tuple[str, int]] = []
    env: dict[str, str] = {}
    packages: list[str] = []
    max_calls: int = 0
    max_retries: int = 0
    actor: bytes = b""
    method: str = ""
    code_bytes: int = 0
    parent: bytes = b""
    # The function of a task with a name of its own.
    function: str = ""


class NewActor(msgspec.Struct, array_like=True, tag="actor"):
    """An actor; `call` constructs it, and its id is the actor's."""

    call: Call
    name: str = ""
    get_if_exists: bool = False
    detached: bool = False
    max_concurrency: int = 1
    # The name of its class; that of `call` is the actor's own if it has one.
    kind: str = ""


class FindActor(msgspec.Struct, array_like=True, tag="find"):
    """A request for the actor that has a name."""

    name: str


class Run(msgspec.Struct, array_like=True, tag="run"):
    """A call that an executor runs. `code` is empty if the executor knows the digest.

    `method`: of the actor; `__init__` constructs it. `values` are those of `needs` at `places`.
    """

    id: bytes
    name: str
    digest: bytes
    code: bytes
    args: Payload
    places: list[int | str]
    needs: list[bytes]
    values: list[Payload]
    env: dict[str, str]
    method: str = ""
    max_concurrency: int = 1
    code_bytes: int = 0
    # The bytes of the largest value that the process may send inside of messages from now on.
    inline_limit: int = LARGEST_INLINE


class Recall(msgspec.Struct, array_like=True, tag="recall"):
    """A request to give back up to `count` calls that have not started."""

    count: int


class Interrupt(msgspec.Struct, array_like=True, tag="interrupt"):
    """A request to end a call: to drop it, or to raise KeyboardInterrupt in it."""

    id: bytes


class Done(msgspec.Struct, array_like=True, tag="done"):
    """The result of a call, and how long it ran."""

    id: bytes
    payload: Payload
    ran_ns: int


class Returned(msgspec.Struct, array_like=True, tag="returned"):
    """The calls that were given back; the executor will not run them."""

    ids: list[bytes]


class Held(msgspec.Struct, array_like=True, tag="held"):
    """References that a process began to hold (`kept`), and holds no longer (`dropped`)."""

    kept: list[bytes]
    dropped: list[bytes]


class Started(msgspec.Struct, array_like=True, tag="started"):
    """The first message of an executor: the process id."""

    pid: int


class Hello(msgspec.Struct, array_like=True, tag="hello"):
    """The first message of a task's connection: the number of its executor."""

    executor: int


class Await(msgspec.Struct, array_like=True, tag="await"):
    """A request to answer when `count` of the objects are ready; with `values`, with them.

    With `values` an error among the objects answers at once.
    """

    ids: list[bytes]
    count: int
    values: bool


class StopWaiting(msgspec.Struct, array_like=True, tag="stop"):
    """A request to answer the `Await` before now, with what is ready."""


class Watch(msgspec.Struct, array_like=True, tag="watch"):
    """A request to answer, beside others, when an object is ready: with its value or error."""

    id: bytes


class Unwatch(msgspec.Struct, array_like=True, tag="unwatch"):
    """A request not to answer a `Watch` any more."""

    id: bytes


class Put(msgspec.Struct, array_like=True, tag="put"):
    """A new object."""

    id: bytes
    payload: Payload


class Cancel(msgspec.Struct, array_like=True, tag="cancel"):
    """A request to cancel a call, and with `recursive` the calls that it has made."""

    id: bytes
    recursive: bool = True


class Reply(msgspec.Struct, array_like=True, tag="reply"):
    """The answer to a request of a task: an error, or what was requested."""

    error: Payload | None = None
    ready: list[bytes] = []
    values: list[Payload] = []
    actor: bytes = b""
    # As that of `Run`.
    inline_limit: int = LARGEST_INLINE


class Setup(msgspec.Struct, array_like=True, tag="setup"):
    """The first message to a zygote: the program's environment, and modules to import once.

    Paths and arguments are bytes: those of a program need not be valid UTF-8.
    """

    path: list[bytes]
    folder: bytes
    argv: list[bytes]
    modules: list[str]
    # The sockets of the host, for its tasks' requests and of its object store: in a private folder.
    address: bytes
    store_address: bytes


class InFile(msgspec.Struct, array_like=True, tag="file"):
    """A message to a zygote that is too large for its socket: in a file, which comes first."""


class Fork(msgspec.Struct, array_like=True, tag="fork"):
    """A request for an executor. Its two sockets come with the message."""

    number: int
    env: dict[str, str]


class Kill(msgspec.Struct, array_like=True, tag="kill"):
    """A request to kill an executor, with the processes that it started."""

    number: int


class Ended(msgspec.Struct, array_like=True, tag="ended"):
    """The end of an executor: its exit code, or the signal as a negative number."""

    number: int
    status: int


class Ready(msgspec.Struct, array_like=True, tag="ready"):
    """The zygote has imported its modules."""


TO_EXECUTOR = Run
TO_CONTROL = Recall | Interrupt
FROM_EXECUTOR = Done | Returned | Held | Started
FROM_TASK = (
    Hello | Call | NewActor | FindActor | Await | StopWaiting | Watch | Unwatch | Put | Cancel
)
TO_ZYGOTE = Setup | InFile | Fork | Kill
FROM_ZYGOTE = Ready | Ended


def frame(message: msgspec.Struct) -> bytes:
    """Encode a message with its length."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class FrameBuffer(Generic[_Message]):
    """The messages in bytes that arrive in pieces."""

    def __init__(self, kinds: object) -> None:
        self._decoder: msgspec.msgpack.Decoder[_Message] = msgspec.msgpack.Decoder(kinds)
        self._rest = bytearray()

    def feed(self, data: bytes | memoryview) -> list[_Message]:
        """Take bytes; return the messages that are complete."""
        if not self._rest:
            view = memoryview(data)
            messages, used = self._messages_of(view)
            self._rest += view[used:]
            return messages
        self._rest += data
        with memoryview(self._rest) as view:
            messages, used = self._messages_of(view)
        del self._rest[:used]
        return messages

    def _messages_of(self, view: memoryview) -> tuple[list[_Message], int]:
        messages, start, head = [], 0, _LENGTH.size
        while len(view) - start >= head:
            (length,) = _LENGTH.unpack_from(view, start)
            end = start + head + length
            if end > len(view):
                break
            messages.append(self._decoder.decode(view[start + head : end]))
            start = end
        return messages, start


class FrameReader(Generic[_Message]):
    """The messages that arrive on a socket."""

    def __init__(self, connection: socket.socket, kinds: object) -> None:
        self._connection = connection
        self._buffer: FrameBuffer[_Message] = FrameBuffer(kinds)
        self._received = memoryview(bytearray(_RECEIVED_AT_ONCE))

    def read(self) -> list[_Message]:
        """Receive once; return the messages that are complete. EOFError: the peer has closed."""
        try:
            size = self._connection.recv_into(self._received)
        except ConnectionResetError:
            size = 0
        if not size:
            raise EOFError
        return self._buffer.feed(self._received[:size])
