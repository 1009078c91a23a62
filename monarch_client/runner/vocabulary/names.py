"""Names, paths and links that every node can have and that lead nowhere else."""

from __future__ import annotations

import unicodedata

from monarch_client.runner.vocabulary.limits import MAX_NAME_BYTES, MAX_PATH_BYTES


def is_ordinary_name(name: str) -> bool:
    """Whether every node can have a file of this name, which is one part of a path."""
    if name in {"", ".", ".."} or "/" in name:
        return False
    size = _size_of(name)
    return size is not None and size <= MAX_NAME_BYTES and not has_control_characters(name)


def is_ordinary_path(path: str) -> bool:
    """Whether a path, or the target of a link, is UTF-8, short, and without control characters."""
    size = _size_of(path)
    return size is not None and size <= MAX_PATH_BYTES and not has_control_characters(path)


def has_control_characters(text: str) -> bool:
    """Whether a text has characters that move a terminal's cursor, or end a name."""
    # Nearly every name is printable, which one call finds out.
    return not text.isprintable() and any(unicodedata.category(each) == "Cc" for each in text)


def ups_of(target: str) -> int | None:
    """Return the folders that a link goes up first; None if it is absolute or goes up later.

    A link that goes up at its beginning only starts every step in a real folder: no other link on
    its way can lead it outside.
    """
    parts = target.split("/")
    first = 0
    while first < len(parts) and parts[first] in {"..", "."}:
        first += 1
    if not target or target.startswith("/") or ".." in parts[first:]:
        return None
    return parts[:first].count("..")


def _size_of(text: str) -> int | None:
    """Return the bytes of a name; None if they are not UTF-8."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None
