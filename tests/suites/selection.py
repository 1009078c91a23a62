"""Choose the tests that one run of CI takes from an expensive suite.

A run takes one slice of the suite, every test that the change touches, and the suite's smoke test.
Everything here is a function of test ids and of git's history, so that all workers of pytest-xdist
choose the same tests. `tests/suites/plugin.py` applies the choice; ADR 0019 gives the reasons.
"""

from __future__ import annotations

import ast
import os
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from tests.suites.watches import WATCHES

ROOT = Path(__file__).resolve().parents[2]
SLICES = 12
# A change to more packages than this is tested by two slices instead of by what it touches.
LARGE_CHANGE = 1 / 3
PRODUCT = ("jobs", "monarch_client", "monarch_portal", "templates")
SAID_BY_ALL = ("jobs.models", "jobs.statuses", "jobs.errors")
PRODUCT_SUFFIXES = {".py", ".js", ".css", ".html"}
# Older commits are not part of the change: one takes three hours at most, and an hour is spare.
LONGEST_CHANGE_S = 4 * 3600


@dataclass(frozen=True)
class Candidate:
    """A test of an expensive suite.

    `stays_together` holds for all tests of a file, or for none: they share what is dear to make.
    """

    id: str
    is_smoke: bool = False
    stays_together: bool = False

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.id.split("::", 1)[0]

    @property
    def slice(self) -> int:
        """Return its slice, 0 to 11: a hash of its id, or of its file where tests stay together."""
        return zlib.crc32((self.file if self.stays_together else self.id).encode()) % SLICES


@dataclass(frozen=True)
class Change:
    """The files that a change touches, and the product packages that they belong to."""

    files: frozenset[str]
    packages: frozenset[str]
    package_count: int

    @property
    def is_large(self) -> bool:
        """Whether the change touches more than a third of the product's packages."""
        return len(self.packages) > self.package_count * LARGE_CHANGE

    def touches(self, test_file: str) -> bool:
        """Whether the change touches a package that the test watches."""
        watched = packages_watched_by(test_file)
        return any(is_watched(package, each) for each in watched for package in self.packages)


def select(tests: Sequence[Candidate], slices: frozenset[int], change: Change | None) -> set[str]:
    """Return the ids of the tests to run: slices, smoke tests, and what the change touches.

    Every test whose own file is touched runs. If the tests of touched packages outside the slices
    outnumber a slice, the next slice runs in their place: some of them then do not run, but no run
    takes more than about two slices.
    """
    chosen = {test.id for test in tests if test.slice in slices}
    edited = {test.id for test in tests if change and test.file in change.files}
    touched = {test.id for test in tests if change and change.touches(test.file)}
    if len(touched - chosen) > len(tests) / SLICES:
        touched = {test.id for test in tests if test.slice in following(slices)}
    return chosen | edited | touched | {test.id for test in tests if test.is_smoke}


def following(slices: frozenset[int]) -> frozenset[int]:
    """Return the slices and the one after the last of them."""
    return slices | {(max(slices) + 1) % SLICES}


def packages_of(files: Iterable[str]) -> frozenset[str]:
    """Return the product packages that hold the files: their folders, as `jobs/actions`."""
    return frozenset(
        str(PurePosixPath(file).parent)
        for file in files
        if file.startswith(tuple(f"{folder}/" for folder in PRODUCT))
        and PurePosixPath(file).suffix in PRODUCT_SUFFIXES
        and "/migrations/" not in file
    )


@cache
def packages_watched_by(test_file: str) -> frozenset[str]:
    """Return the product packages that the test imports from, mirrors by its path, or declares.

    `jobs/logs` means the package and all below it, `jobs/*` for the modules of `jobs` itself.
    """
    tree = ast.parse((ROOT / test_file).read_text(encoding="utf-8"))
    imported = {
        f"{package}/*"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for package in _packages_imported(node)
    }
    mirrored = {f"{folder}/{PurePosixPath(test_file).parts[2]}" for folder in PRODUCT}
    declared = {
        package
        for path, packages in WATCHES.items()
        if is_below(test_file, path)
        for package in packages
    }
    return frozenset(each for each in mirrored if (ROOT / each).is_dir()) | imported | declared


def _packages_imported(node: ast.ImportFrom) -> set[str]:
    """Return the packages of the product that hold the modules which the statement imports."""
    module = str(node.module)
    # What every test with a database imports says nothing about what it tests.
    if module.split(".", maxsplit=1)[0] not in PRODUCT or module.startswith(SAID_BY_ALL):
        return set()
    paths = [PurePosixPath(*module.split("."), alias.name) for alias in node.names]
    modules = [path if (ROOT / f"{path}.py").is_file() else path.parent for path in paths]
    return {str(each if (ROOT / each).is_dir() else each.parent) for each in modules}


def is_watched(package: str, watched: str) -> bool:
    """Whether a package is among those that a test watches."""
    return f"{package}/*" == watched or is_below(package, watched)


def is_below(path: str, folder: str) -> bool:
    """Whether the path is the folder or is below it."""
    return path == folder or path.startswith(f"{folder}/")


def change_since(commit: str) -> Change:
    """Return the files that differ between the commit and the working tree.

    Raises:
        subprocess.CalledProcessError: git does not know the commit.
    """
    files = frozenset(_git("diff", "--no-renames", "--name-only", commit).split("\n"))
    everything = packages_of(_git("ls-files").split("\n"))
    return Change(files, packages_of(files), len(everything))


def base_commit() -> str:
    """Return the commit that the change under test starts from, or "" without a history.

    `CI_BASE` names it. Else it is the newest merge commit or the newest commit that is four hours
    older than HEAD, whichever is newer.
    """
    if named := os.environ.get("CI_BASE"):
        return named
    try:
        head_s = int(_git("log", "-1", "--format=%ct"))
        merge = _git("log", "-1", "--merges", "--format=%ct %H", "HEAD~1")
        before = f"--before={head_s - LONGEST_CHANGE_S}"
        older = _git("log", "-1", before, "--format=%ct %H")
    except subprocess.CalledProcessError:
        return ""
    newest = max((each for each in (merge, older) if each), key=_time_of, default="")
    return newest.partition(" ")[2]


def _time_of(line: str) -> int:
    return int(line.split(" ", maxsplit=1)[0])


def commit_count() -> int:
    """Return how many commits HEAD has, or 0 without a history."""
    try:
        return int(_git("rev-list", "--count", "HEAD"))
    except subprocess.CalledProcessError:
        return 0


def is_shallow() -> bool:
    """Whether git has only the end of the history, so that the commit count is meaningless."""
    try:
        return _git("rev-parse", "--is-shallow-repository") == "true"
    except subprocess.CalledProcessError:
        return False


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
