"""Trees of code as plain dictionaries, put into a store and read back from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from monarch_client.runner.code.manifest import (
    BLOCK_BYTES,
    File,
    Folder,
    Link,
    encode,
)
from monarch_client.runner.code.store import Store
from monarch_client.runner.code.trees import Trees

if TYPE_CHECKING:
    from monarch_client.runner.code.manifest import Entries


@dataclass(frozen=True)
class Script:
    """An executable file."""

    content: bytes


@dataclass(frozen=True)
class To:
    """A symbolic link."""

    target: str


# A name leads to the content of a file, an executable file, a link or a folder.
Model = dict[str, "bytes | Script | To | Model"]


def plant(store: Store, model: Model) -> str:
    """Add the blocks and manifests of a tree to a store, and return the tree's name."""
    entries: Entries = {}
    for name, each in model.items():
        if isinstance(each, dict):
            entries[name] = Folder(plant(store, each))
        elif isinstance(each, To):
            entries[name] = Link(each.target)
        elif isinstance(each, Script):
            entries[name] = plant_file(store, each.content)._replace(is_executable=True)
        else:
            entries[name] = plant_file(store, each)
    return store.add(encode(entries))


def plant_file(store: Store, content: bytes) -> File:
    """Add the blocks of a file to a store."""
    parts = range(0, len(content), BLOCK_BYTES)
    blocks = tuple(store.add(content[start : start + BLOCK_BYTES]) for start in parts)
    return File(len(content), blocks)


def read_back(store: Store, tree: str) -> Model:
    """Return the tree that a store holds."""
    model: Model = {}
    for name, entry in Trees(store).entries(tree).items():
        if isinstance(entry, Folder):
            model[name] = read_back(store, entry.digest)
        elif isinstance(entry, Link):
            model[name] = To(entry.target)
        else:
            content = b"".join(store.read(block) for block in entry.blocks)
            assert len(content) == entry.size
            model[name] = Script(content) if entry.is_executable else content
    return model
