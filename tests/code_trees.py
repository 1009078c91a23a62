"""Trees of code as plain dictionaries, put into a store and read back from it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
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


def write_out(model: Model, folder: Path) -> None:
    """Write a tree as an upload is unpacked."""
    folder.mkdir()
    for name, each in model.items():
        path = folder / name
        if isinstance(each, dict):
            write_out(each, path)
        elif isinstance(each, To):
            path.symlink_to(each.target)
        else:
            path.write_bytes(each.content if isinstance(each, Script) else each)
            path.chmod(0o755 if isinstance(each, Script) else 0o644)


def found_in(folder: Path) -> Model:
    """Return the tree that programs see in a folder."""
    model: Model = {}
    for path in folder.iterdir():
        if path.is_symlink():
            model[path.name] = To(os.readlink(path))  # noqa: PTH115 - it would lose a ./
        elif path.is_dir():
            model[path.name] = found_in(path)
        else:
            content = path.read_bytes()
            model[path.name] = Script(content) if path.stat().st_mode & 0o100 else content
    return model
