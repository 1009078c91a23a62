"""Parse ignore files, and match paths by git's rules."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from monarch_client.errors import ArchiveError
from monarch_client.sync.wildmatch import Match, git_regex, match_any, sky_match

_WILDCARDS = re.compile(r"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file. `source` is where it is: file and line number."""

    source: str
    text: str
    match: Match
    is_negated: bool = False
    only_folders: bool = False
    only_names: bool = False
    # Of git's patterns, to compare all rules of a file at once.
    regex: bytes | None = None

    def __str__(self) -> str:
        return f"{self.source}: {self.text}"

    @property
    def is_literal(self) -> bool:
        """Whether the rule has no wildcards."""
        return not _WILDCARDS.search(self.text)

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the rule matches this path itself, not only a folder around it."""
        if self.only_folders and not is_folder:
            return False
        subject = path.rpartition("/")[2] if self.only_names else path
        return self.match(subject)


@dataclass(frozen=True)
class IgnoreFile:
    """The rules of one file, for what is below `below`: empty, or with a slash at its end."""

    below: str
    rules: tuple[Rule, ...]

    def find(self, path: str, *, is_folder: bool) -> Rule | None:
        """Return the last rule about `path`, which is the one that counts."""
        if not path.startswith(self.below):
            return None
        inside = path[len(self.below) :]
        # Nearly all are such paths.
        if not self._may_match(inside):
            return None
        for rule in reversed(self.rules):
            if rule.matches(inside, is_folder=is_folder):
                return rule
        return None

    @cached_property
    def _may_match(self) -> Match:
        """Whether any rule may match a path, which is one comparison where the rules are git's."""
        names = [each.regex for each in self.rules if each.regex is not None and each.only_names]
        paths = [
            each.regex for each in self.rules if each.regex is not None and not each.only_names
        ]
        if len(names) + len(paths) < len(self.rules):
            return lambda _path: True
        is_name, is_path = match_any(names), match_any(paths)
        return lambda path: is_name(path.rpartition("/")[2]) or is_path(path)


def git_rule(source: str, line: str) -> Rule | None:
    """Return the rule of a line as git reads it; None for a comment."""
    text = _without_trailing_spaces(line)
    if not text or text.startswith("#"):
        return None
    is_negated, body = text.startswith("!"), text.removeprefix("!")
    only_folders, body = body.endswith("/"), body.removesuffix("/")
    regex = git_regex(body)
    is_name = "/" not in body
    return Rule(source, text, match_any([regex]), is_negated, only_folders, is_name, regex)


def sky_rule(source: str, line: str) -> Rule | None:
    """Return the rule of a line as SkyPilot reads it; None for a comment.

    "!" is a character like any other. ArchiveError: the line leads out of a folder and back, which
    depends on the names of folders outside.
    """
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    if ".." in text.split("/"):
        raise ArchiveError(f"{source} has a path with '..'. Write it without.")
    match, only_folders = sky_match(text)
    return Rule(source, text, match, only_folders=only_folders)


def read_ignore_file(
    path: Path,
    below: str,
    shown: str,
    parse: Callable[[str, str], Rule | None] = git_rule,
    *,
    must_be_utf8: bool = True,
) -> IgnoreFile:
    """Read an ignore file, called `shown` in messages.

    ArchiveError: it cannot be read, or a rule in it is not UTF-8 where it must be: then it would
    match nothing, and what it is to keep back would travel.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArchiveError(f"{shown} cannot be read: {error.strerror}.") from error
    rules = []
    for number, raw in enumerate(content.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        line = raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
        rule = parse(f"{shown}:{number}", line)
        if rule is None:
            continue
        if must_be_utf8 and not _is_utf8(line):
            raise ArchiveError(
                f"Line {number} of {shown} is not UTF-8, so it would match nothing. "
                "Save the file as UTF-8."
            )
        rules.append(rule)
    return IgnoreFile(below, tuple(rules))


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    escapes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if escapes % 2 and kept != line else kept


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
