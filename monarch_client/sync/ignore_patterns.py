"""Parse ignore files, and match paths by git's rules."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from monarch_client.errors import ArchiveError

_WILDCARDS = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
# An escaped character or a set of them, in the expressions that pathspec writes.
_SET = re.compile(r"\\.|\[(?P<negation>\^?)(?P<characters>\]?[^\]]*)\]", re.DOTALL)
_SLASHES = re.compile("/+")
# git compares the text before the first wildcard separately, so it reads stars after a name like
# stars at the beginning of a pattern.
_STARS_AFTER_NAME = re.compile(r"(?P<name>[^*?\[\\]*[^*?\[\\/])\*{2,}/(?P<rest>.+)")
_MANY_STARS = re.compile(r"\*{3,}")
_INSIDE = re.compile(r"(?:/\*\*)+\Z")
# What pathspec makes of patterns that match everything, which is good for a search only.
_EVERYTHING = "."
_LAST_SPACE = re.compile(r"\\?(\s)\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file. `source` is where it is: file and line number."""

    source: str
    text: str
    regex: re.Pattern[str]
    is_negated: bool = False
    only_folders: bool = False
    only_names: bool = False

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
        return self.regex.fullmatch(subject) is not None


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The rules of one file, for what is below `below`: empty, or with a slash at its end."""

    below: str
    rules: tuple[Rule, ...]

    def find(self, path: str, *, is_folder: bool) -> Rule | None:
        """Return the last rule about `path`, which is the one that counts."""
        if not path.startswith(self.below):
            return None
        inside = path[len(self.below) :]
        for rule in reversed(self.rules):
            if rule.matches(inside, is_folder=is_folder):
                return rule
        return None


def git_rule(source: str, line: str) -> Rule | None:
    """Return the rule of a line as git reads it; None for a comment or an impossible pattern."""
    text = _without_trailing_spaces(line)
    if not text or text.startswith("#"):
        return None
    is_negated, body = text.startswith("!"), text.removeprefix("!")
    only_folders, body = body.endswith("/"), body.removesuffix("/")
    only_names = "/" not in body
    regex = _git_regex(body)
    if regex is None:
        return None
    return Rule(source, text, regex, is_negated, only_folders, only_names)


def sky_rule(source: str, line: str) -> Rule | None:
    """Return the rule of a line as SkyPilot reads it.

    A line without a slash in front counts at every depth, also where it has one inside, and "!"
    is a character like any other.
    """
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    only_folders, body = text.endswith("/"), _SLASHES.sub("/", text).removesuffix("/")
    folder = _INSIDE.sub("", body)
    if folder not in {"", "**", body}:
        # In SkyPilot `folder/**` also matches the folder itself.
        only_folders, body = True, folder
    regex = _regex(body if text.startswith("/") else f"**/{body}")
    return None if regex is None else Rule(source, text, regex, only_folders=only_folders)


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


def _git_regex(body: str) -> re.Pattern[str] | None:
    glued = _STARS_AFTER_NAME.fullmatch(body)
    if glued is None:
        return _regex(body)
    name, rest = glued["name"], glued["rest"]
    # Any folders may be between them, and also nothing.
    found = (_regex(f"{name}*/**/{rest}"), _git_regex(f"/{name.removeprefix('/')}{rest}"))
    parts = [f"(?:{each.pattern})" for each in found if each]
    return re.compile("|".join(parts), re.DOTALL) if parts else None


def _regex(body: str) -> re.Pattern[str] | None:
    """Return a regex for whole paths by git's rules; None for a pattern that never matches."""
    body = _MANY_STARS.sub("**", body)
    if body.rpartition("/")[2] == "**":
        body = f"{body}/?*"
    # A line's own grammar is read already: a slash in front and no space at the end keep pathspec
    # from reading it again.
    body = _LAST_SPACE.sub(r"[\1]", body)
    anchored = body if body.startswith(("/", "**/")) else f"/{body}"
    try:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(_with_ranges(anchored))
        if regex is None:
            return None
        # The names of its groups would clash where one expression is put together of several.
        regex = ".+" if regex == _EVERYTHING else regex.replace("(?P<ps_d>", "(?:")
        return re.compile(_SET.sub(_git_set, regex), re.DOTALL)
    except (GitIgnorePatternError, re.error):
        return None


def _with_ranges(pattern: str) -> str:
    """Return a pattern with ranges in place of [:classes:], which pathspec lacks."""
    for name, characters in _CLASSES.items():
        pattern = pattern.replace(f"[:{name}:]", characters)
    return pattern


def _git_set(found: re.Match[str]) -> str:
    """Return a set of characters with git's meaning: nested brackets are plain, no slash fits."""
    negation, characters = found["negation"], found["characters"]
    if characters is None:
        return found[0]
    characters = re.sub(r"[\[&|~]", r"\\\g<0>", characters).replace("--", r"-\-")
    return f"[^/{characters}]" if negation else f"(?!/)[{characters}]"


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
