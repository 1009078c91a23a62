"""The messages of the service `code`, by which a laptop sends code to the head node.

Each is a line of JSON. A block follows its line as so many bytes.

| from | message | meaning |
|---|---|---|
| laptop | `sync` `folders` | The name of a tree, and those of all its folders if they are few. |
| head | `need` | Blocks that the head lacks, manifests first; several lines, until it has all. |
| laptop | `block` `size` | A block of a `need`, in their order; the bytes follow. |
| laptop | `changed` | A file has changed meanwhile: no more blocks of this tree come. |
| head | `dropped` | The answer to `changed`. The next `sync` begins anew. |
| head | `busy` | It is still at work. |
| head | `switching` `ready` `of` | So many ranks have the tree. |
| head | `done` `ranks` `late` | So many ranks have switched; the reasons of the others by rank. |
| | `unkept` | Why a recovered attempt would not start with the tree; empty if it would. |
| | `keeping` | Whether that is not known, since the portal receives it now. |
| laptop | `kept` | The name of such a tree: report once it is known. |
| head | `kept` `unkept` | The answer; `busy` comes before it. |
| head | `failed` `ranks` | The reason, and those of ranks by number. All keep the code before. |
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from monarch_client.runner.vocabulary.messages import MalformedError, object_in

if TYPE_CHECKING:
    import asyncio
    from typing import Any

MAX_LINE_BYTES = 256 * 1024
# Names of blocks in one line: 70 bytes each.
MOST_NAMES = 1000
# More folders than that are found level by level.
MOST_FOLDERS = 3000

# Small blocks are read, written and sent together up to this size: most files are small.
BATCH_BYTES = 1024 * 1024
BATCH_BLOCKS = 1000

# The head sends `busy` at this interval between a `sync` and its answer.
BUSY_S = 5.0


class MessageError(EOFError):
    """A line that is no message, with which a stream ends."""


def pack(**fields: Any) -> bytes:
    """Return the line of a message."""
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def unpack(line: bytes) -> dict[str, Any]:
    """Return the fields of a line. MessageError: it is no message, or broken off."""
    try:
        return object_in(line if line.endswith(b"\n") else b"")
    except MalformedError as error:
        raise MessageError("a line is no message") from error


def names_in(message: dict[str, Any], field: str) -> list[Any]:
    """Return the list of a field, empty if there is none. MessageError: it is no list."""
    found = message.get(field, [])
    if not isinstance(found, list):
        raise MessageError(f"{field} of a message is no list")
    return found


async def receive(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next message; None at the end of the stream. MessageError."""
    try:
        line = await reader.readline()
    except ValueError as error:  # longer than the reader's limit
        raise MessageError("a line is too long") from error
    return unpack(line) if line else None
