"""Translate git's patterns and SkyPilot's to functions that match a path, character for character.

Called for each line of an ignore file (`ignore_patterns`). Libraries for .gitignore differ from
git where a pattern is odd, and a file would travel that its owner keeps back.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

# Whether a path matches: of a pattern without a slash, whether the last name does.
Match = Callable[[str], bool]

_MAGIC = re.compile(r"[*?\[]")
# git compares the text before the first wildcard separately, so stars after it are like stars at
# the beginning of a pattern.
_LITERAL = re.compile(rb"[^*?\[\\]*")
_NEVER = b"(?!)"
# One member of a set: a class, or a character that may begin a range.
_MEMBER = re.compile(
    rb"\[:(?P<name>[^\]]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\]\\]))?", re.DOTALL
)
_LETTERS = string.ascii_letters.encode()
_DIGITS, _PUNCTUATION = string.digits.encode(), string.punctuation.encode()
_CLASSES = {
    b"alnum": _LETTERS + _DIGITS,
    b"alpha": _LETTERS,
    b"blank": b" \t",
    b"cntrl": bytes((*range(32), 127)),
    b"digit": _DIGITS,
    b"graph": _LETTERS + _DIGITS + _PUNCTUATION,
    b"lower": string.ascii_lowercase.encode(),
    b"print": _LETTERS + _DIGITS + _PUNCTUATION + b" ",
    b"punct": _PUNCTUATION,
    b"space": b" \t\n\r",
    b"upper": string.ascii_uppercase.encode(),
    b"xdigit": string.hexdigits.encode(),
}


def git_regex(pattern: str) -> bytes:
    """Return the regex of a pattern without the slash at its end, as git's wildmatch.c reads it.

    git compares bytes: `?` is one of the two of an umlaut.
    """
    return _git_regex(_bytes(pattern).removeprefix(b"/"))


def match_any(regexes: Sequence[bytes]) -> Match:
    """Return the match of any of some regexes of patterns."""
    if not regexes:
        return lambda _path: False
    regex = re.compile(b"|".join(b"(?:%s)" % each for each in regexes), re.DOTALL)
    return lambda path: regex.fullmatch(_bytes(path)) is not None


def sky_match(pattern: str) -> tuple[Match, bool]:
    """Return the match of a pattern as SkyPilot gives it to `glob`, and whether only of folders.

    A pattern without a slash in front matches at every depth, also where it has one inside.
    """
    rooted = pattern if pattern.startswith("/") else f"**/{pattern}"
    parts = [part for part in rooted.split("/") if part not in {"", "."}]
    # Of several `**` in a row the first is enough.
    parts = [part for before, part in pairwise(["", *parts]) if not before == part == "**"]
    only_folders = rooted.endswith(("/", "/."))
    if len(parts) > 1 and parts[-1] == "**":
        # All that is below a folder, and the folder itself; `glob` also finds a file by its name.
        parts.pop()
        only_folders = only_folders or _MAGIC.search(parts[-1]) is not None
    return lambda path: _is_glob(tuple(parts), tuple(path.split("/"))), only_folders


def _git_regex(pattern: bytes) -> bytes:
    literal = _LITERAL.match(pattern)
    at = literal.end() if literal else 0
    start, regex = at, re.escape(pattern[:at])
    while at < len(pattern):
        character = pattern[at : at + 1]
        if character == b"*":
            piece, at = _stars(pattern, start, at)
        elif character == b"[":
            piece, at = _set(pattern, at + 1)
        elif character == b"?":
            piece, at = b"[^/]", at + 1
        elif character == b"\\":
            # A backslash at the end matches nothing.
            piece, at = re.escape(pattern[at + 1 : at + 2]) or _NEVER, at + 2
        else:
            piece, at = re.escape(character), at + 1
        regex += piece
    return regex


def _stars(pattern: bytes, start: int, at: int) -> tuple[bytes, int]:
    """Return the regex of the stars at `at`, and the position behind them."""
    rest = pattern[at:].lstrip(b"*")
    end = len(pattern) - len(rest)
    is_first = at == start or pattern[at - 1 : at] == b"/"
    if end - at == 1 or not is_first or not (rest == b"" or rest.startswith((b"/", b"\\/"))):
        return b"[^/]*", end
    # Any folders may be in their place, and also none.
    return (b"(?:.*/)?", end + 1) if rest.startswith(b"/") else (b".*", end)


def _set(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Return the regex of the set that begins at `at`, and the position behind it.

    No set matches a slash. Without an end, or with an unknown class, the pattern matches nothing.
    """
    is_negated = pattern[at : at + 1] in {b"!", b"^"}
    at += is_negated
    first, members = at, set[int]()
    while at == first or pattern[at : at + 1] != b"]":
        found = _MEMBER.match(pattern, at)
        more = _members(found) if found else None
        if found is None or more is None:
            return _NEVER, len(pattern)
        members |= more
        at = found.end()
    members = (set(range(256)) - members if is_negated else members) - {ord("/")}
    characters = b"".join(b"\\x%02x" % each for each in sorted(members))
    return b"[" + characters + b"]" if members else _NEVER, at + 1


def _members(found: re.Match[bytes]) -> set[int] | None:
    """Return the bytes of a class, character or range; None for an unknown class."""
    name, low, high = found.group("name", "low", "high")
    if low is None:
        return set(_CLASSES[name]) if name in _CLASSES else None
    # The first character counts also where the range ends below it.
    return {low[-1], *range(low[-1], high[-1] + 1 if high else 0)}


def _is_glob(parts: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Whether a path matches as `glob` compares it: name by name, `**` being any number of them."""
    if not parts or not names:
        return not names and set(parts) <= {"**"}
    if parts[0] == "**":
        return _is_glob(parts[1:], names) or _is_glob(parts, names[1:])
    return fnmatchcase(names[0], parts[0]) and _is_glob(parts[1:], names[1:])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
