"""Decide which files stay behind when a folder is packed, and by which rule.

Three layers, each stronger than the one before: git's ignore files or, instead of them, the
folder's .skyignore; the names that always stay behind; .mportalignore.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from monarch_client.sync.ignore_patterns import (
    IgnoreFile,
    Rule,
    git_rule,
    read_ignore_file,
    sky_rule,
)
from monarch_client.sync.work_tree import WorkTree, exclude_file, work_tree_of

OWN_FILE, SKY_FILE, GIT_FILE = ".mportalignore", ".skyignore", ".gitignore"
# Not needed on a node; all can be made again there.
ALWAYS_IGNORED = (
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "__pycache__",
    "*.pyc",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".DS_Store",
)
# Files that make a folder a virtual environment, whatever its name.
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta/history")
# Names and endings, which are compared sooner than ten patterns for each of many files.
_NAMES = frozenset(each for each in ALWAYS_IGNORED if "*" not in each)
_ENDINGS = tuple(each.removeprefix("*") for each in ALWAYS_IGNORED if "*" in each)
_ALWAYS = IgnoreFile("", tuple(filter(None, (git_rule("always", text) for text in ALWAYS_IGNORED))))


def is_always_ignored(path: Path) -> bool:
    """Whether a relative path is in one of the folders, or is one of the files, never wanted."""
    return any(part in _NAMES or part.endswith(_ENDINGS) for part in path.parts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision whether an entry travels, and the rule behind it, if any.

    `inside` holds the rules in the entry, if it is a folder to walk.
    """

    stays: bool
    rule: str = ""
    inside: Ignore | None = None


_TRAVELS = Verdict(False)


@dataclass(frozen=True)
class Ignore:
    """The rules that hold in one folder."""

    # The folder that is packed, and the path of this one in it: empty, or with a slash at its end.
    top: Path
    below: str = ""
    own: tuple[IgnoreFile, ...] = ()
    base: tuple[IgnoreFile, ...] = ()
    base_file: str = GIT_FILE
    tree: WorkTree | None = field(default=None, repr=False)
    # The git rule that excludes this folder, except for its tracked files.
    inherited: Rule | None = None

    @cached_property
    def has_rules(self) -> bool:
        """Whether there are rules besides the built-in ones."""
        return bool(self.own or self.base or self.inherited)

    @classmethod
    def of(cls, folder: Path) -> Ignore:
        """Return the rules at the top of `folder`. ArchiveError: see `read_ignore_file`."""
        if (folder / SKY_FILE).is_file():
            return cls(folder, base_file=SKY_FILE)._with_files_here()
        tree = work_tree_of(folder)
        outer = tuple(_around(tree)) if tree else ()
        return cls(folder, base=outer, tree=tree)._with_files_here()

    def judge(self, name: str, *, is_folder: bool) -> Verdict:
        """Say whether the entry `name` of this folder travels."""
        if not (is_folder or self.has_rules or name in _NAMES or name.endswith(_ENDINGS)):
            return _TRAVELS
        path = self.below + name
        own = _last(self.own, path, is_folder=is_folder)
        if own and not own.is_negated:
            return Verdict(True, str(own))
        always = self._always(path, is_folder=is_folder)
        if always:
            is_named = own is not None and own.is_literal
            return self._goes(path, is_folder) if is_named else Verdict(True, always)
        base = None if own else self._base_rule(path, is_folder=is_folder)
        if base is None:
            return self._goes(path, is_folder)
        if self.tree and is_folder and path in self.tree.tracked_folders:
            return self._goes(path, is_folder, base)
        is_tracked = self.tree is not None and path in self.tree.tracked
        return self._goes(path, is_folder) if is_tracked else Verdict(True, str(base))

    def _always(self, path: str, *, is_folder: bool) -> str:
        """Return the built-in rule that excludes `path`, or None."""
        name = path.rpartition("/")[2]
        if name in _NAMES or name.endswith(_ENDINGS):
            return str(_ALWAYS.find(path, is_folder=is_folder))
        if is_folder and any((self.top / path / mark).is_file() for mark in _ENVIRONMENT_MARKS):
            return "always: virtual environments"
        return ""

    def _base_rule(self, path: str, *, is_folder: bool) -> Rule | None:
        """Return the rule of git or SkyPilot that leaves `path` behind."""
        if self.inherited:
            return self.inherited
        inside = f"{self.tree.below}{path}" if self.tree else path
        found = _last(self.base, inside, is_folder=is_folder)
        return found if found and not found.is_negated else None

    def _goes(self, path: str, is_folder: bool, inherited: Rule | None = None) -> Verdict:  # noqa: FBT001
        if not is_folder:
            return _TRAVELS
        inner = replace(self, below=f"{path}/", inherited=inherited)
        return Verdict(False, inside=inner._with_files_here())

    def _with_files_here(self) -> Ignore:
        """Return these rules with those of this folder's ignore files on top."""
        here = self.top / self.below
        own, base = here / OWN_FILE, here / self.base_file
        changed = self
        if own.is_file():
            read = read_ignore_file(own, self.below, self.below + OWN_FILE)
            changed = replace(changed, own=(*self.own, read))
        below = f"{self.tree.below if self.tree else ''}{self.below}"
        is_sky = self.base_file == SKY_FILE
        if self.below and not is_sky and (here / ".git").exists():
            # A repository in the folder, with a file of its own.
            exclude = exclude_file(here, here)
            if exclude.is_file():
                shown = f"{self.below}.git/info/exclude"
                read = read_ignore_file(exclude, below, shown, must_be_utf8=False)
                changed = replace(changed, base=(*changed.base, read))
        if base.is_file():
            read = read_ignore_file(
                base,
                below,
                self.below + self.base_file,
                sky_rule if is_sky else git_rule,
                must_be_utf8=is_sky,
            )
            changed = replace(changed, base=(*changed.base, read))
        return changed


def _around(tree: WorkTree) -> Iterator[IgnoreFile]:
    """Read the ignore files of git above the folder, the weakest first."""
    for shown, path in tree.ignore_files:
        if path.is_file():
            yield read_ignore_file(path, "", shown, must_be_utf8=False)
    below = ""
    for part in tree.below.split("/")[:-1] if tree.below else ():
        path = tree.root / below / GIT_FILE
        if path.is_file():
            yield read_ignore_file(path, below, str(path), must_be_utf8=False)
        below += f"{part}/"


def _last(files: tuple[IgnoreFile, ...], path: str, *, is_folder: bool) -> Rule | None:
    for file in reversed(files):
        rule = file.find(path, is_folder=is_folder)
        if rule:
            return rule
    return None
