"""The manifest of a folder: the files, links and folders in it, as canonical JSON.

A manifest is a block like any other, so a folder is named by the digest of its manifest, and a
tree by that of its top folder. Manifests come from other machines: `parse` checks what it can
check in one folder, `trees.py` the rest. Two names that differ in case alone, or in their
normalization, are two names here, as on the file systems of nodes; one that merges them refuses
the second.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.code.errors import FormatError
from monarch_client.runner.vocabulary.names import is_ordinary_name, is_ordinary_path, ups_of

if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Union

    Entry = Union["File", "Link", "Folder"]
    Entries = Dict[str, Entry]

# A file is cut into blocks of this size; the last one is shorter.
BLOCK_BYTES = 1024 * 1024
# The largest block is a manifest: some 100,000 files in one folder, or one file of 200 GB.
MAX_BLOCK_BYTES = 16 * 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE_KEYS = ({"blocks", "size"}, {"blocks", "executable", "size"})


class File(NamedTuple):
    """A regular file: its content is that of its blocks, one after the other."""

    size: int
    blocks: tuple[str, ...]
    is_executable: bool = False


class Link(NamedTuple):
    """A symbolic link to a path inside of the tree."""

    target: str


class Folder(NamedTuple):
    """A folder, by the digest of its manifest."""

    digest: str


def digest_of(content: bytes) -> str:
    """Return the name of a block."""
    return hashlib.sha256(content).hexdigest()


def is_digest(text: object) -> bool:
    """Whether a text has the form of a block's name: no other one becomes a part of a path."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def count_blocks(size: int) -> int:
    """Return the number of blocks of a file."""
    return -(-size // BLOCK_BYTES)


def encode(entries: Mapping[str, Entry]) -> bytes:
    """Return the manifest of a folder; the same entries give the same bytes."""
    plain = {name: _plain(entry) for name, entry in entries.items()}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def parse(content: bytes) -> Entries:
    """Parse a manifest. FormatError: it is not one, or has names that a node cannot have."""
    if len(content) > MAX_BLOCK_BYTES:
        raise FormatError(f"a manifest of {len(content):,} bytes is too large")
    try:
        plain = json.loads(content.decode())
        entries = {name: _entry(name, each) for name, each in plain.items()}
    except FormatError:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"a manifest is broken: {error}"[:200]) from error
    # Of two spellings only one has this digest; this also finds a name that occurs twice.
    if encode(entries) != content:
        raise FormatError("a manifest is not in the canonical form")
    return entries


def _plain(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Folder):
        return {"folder": entry.digest}
    if isinstance(entry, Link):
        return {"link": entry.target}
    plain: dict[str, Any] = {"blocks": entry.blocks, "size": entry.size}
    if entry.is_executable:
        plain["executable"] = True
    return plain


def _entry(name: str, plain: dict[str, Any]) -> Entry:
    if not is_ordinary_name(name):
        raise FormatError(f"{name[:100]!a} is not a name that every node can have")
    keys = set(plain)
    if keys == {"folder"} and is_digest(plain["folder"]):
        return Folder(plain["folder"])
    if keys == {"link"}:
        return _link(name, plain["link"])
    if keys in _FILE_KEYS:
        return _file(name, plain)
    raise FormatError(f"{name[:100]!a} is neither a file, a folder nor a link")


def _link(name: str, target: object) -> Link:
    # The number of folders that it goes up is checked against its depth in the tree.
    if not isinstance(target, str) or ups_of(target) is None or not is_ordinary_path(target):
        raise FormatError(f"the link {name[:100]!a} leads out of the code, or may")
    return Link(target)


def _file(name: str, plain: dict[str, Any]) -> File:
    size, blocks = plain["size"], plain["blocks"]
    is_whole = (
        type(size) is int
        and size >= 0
        and isinstance(blocks, list)
        and len(blocks) == count_blocks(size)
        and all(is_digest(each) for each in blocks)
    )
    if not is_whole or plain.get("executable", True) is not True:
        raise FormatError(f"the file {name[:100]!a} does not have the blocks of its size")
    return File(size, tuple(blocks), "executable" in plain)
