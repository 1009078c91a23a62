"""The files that are packed, against git's own answer and SkyPilot's own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monarch_client.sync.archive import DEFAULT_LIMITS
from monarch_client.sync.selection import select

NAMES = st.sampled_from(["a", "b", "a.key", ".env", "ab", "b.key", "[a]", "a b", "!a", "#a", "ä"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PIECES = st.sampled_from(
    ["a", "b", "*", "**", "?", "/", "/", ".key", ".env", "[ab]", "[!a]", "[^b]", "\\a", "\\*", "[",
     " ", "\\ ", "!", "#", "**/", "/**", "]", "-", "ä", "[/]", "[!/]", "[+-/]", "[[:alpha:]", ":]",
     "\\/", "***"]
)  # fmt: skip
LINES = st.one_of(
    st.lists(PIECES, min_size=1, max_size=5).map("".join),
    st.tuples(st.sampled_from(["", "!", "/", "**/"]), PATHS, st.sampled_from(["", "/", " "])).map(
        "".join
    ),
)
IGNORE_FILES = st.lists(LINES, max_size=6)


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def written(root: Path, files: dict[str, str]) -> Path:
    """Write the files that can exist together: a name that is a folder already is skipped."""
    for path, content in files.items():
        with suppress(FileExistsError, NotADirectoryError):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if not (root / path).is_dir():
                (root / path).write_text(content)
    return root


def selected(folder: Path) -> set[str]:
    entries = select(folder, DEFAULT_LIMITS).entries
    return {entry.path for entry in entries if entry.kind.value != "folder"}


def git_selected(folder: Path) -> set[str]:
    listed = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return {path for path in listed.split("\0") if path}


def is_ignored(root: Path, path: str) -> bool:
    """Whether git ignores the whole folder: then it lists nothing, but the portal takes it."""
    argv = ["git", "-C", str(root), "check-ignore", "-q", "--no-index", f"{path}/"]
    return bool(path) and subprocess.run(argv, check=False).returncode == 0


@settings(max_examples=60, deadline=None)
@given(
    paths=st.sets(PATHS, min_size=3, max_size=10),
    ignored=st.dictionaries(st.sampled_from(["", "a/", "a/b/"]), IGNORE_FILES, max_size=3),
    tracked=st.sets(PATHS, max_size=2),
    at=st.sampled_from(["", "a"]),
)
@example({"a/a", "a/b", "b"}, {"": ["a/**", "!a/b"]}, set(), "")
@example({"a/a", "a/b"}, {"": ["a/", "!a/b"]}, set(), "")
@example({"a/a.key", "a.key"}, {"": ["*.key"], "a/": ["!a.key"]}, set(), "")
@example({"a/b", "a/a"}, {"": ["a/"]}, {"a/b"}, "")
@example({"a", "b", "ab/a"}, {"": ["a**/**"]}, set(), "")
@example({"ab/b/a.key", "a.key", "b"}, {"": ["a**/*.key"]}, set(), "")
@example({"a/b", "a.key", "b"}, {"": ["**/**/*"]}, set(), "")
@example({"a/b", "a.key", "b"}, {"": ["/*"]}, set(), "")
@example({"a/b", "a.key", "b"}, {"": ["***/**"]}, set(), "")
@example({"#a/!a/a", ".env", "a"}, {"": ["[**/[ab]"]}, set(), "")
@example({"a/b", "a.key", "b"}, {"": ["/[^/]"]}, set(), "")
@example({"a/b", "a.key", "b"}, {"": ["a[/]b"]}, set(), "")
@example({"a/b", "a.key", "b"}, {"": ["a[+-/]key"]}, set(), "")
@example({"a/b", "a0key", "b"}, {"": ["a[/-1]key"]}, set(), "")
@example({"ä", "a", "b"}, {"": ["?"]}, set(), "")
@example({"ä", "a", "b"}, {"": ["[ä]"]}, set(), "")
@example({"-", "a", "b", "]"}, {"": ["[]-b]"]}, set(), "")
@example({"a/b", "b", "a.key"}, {"": ["**\\/b"]}, set(), "")
@example({"a", "b", "1"}, {"": ["[[:alpha:]]"]}, set(), "")
@example({"a", "b", "[", ":"}, {"": ["[[:none:]a]"]}, set(), "")
def test_in_a_work_tree_the_files_travel_that_git_lists(paths, ignored, tracked, at):
    with TemporaryDirectory() as place:
        root = written(Path(place), dict.fromkeys(sorted(paths | tracked), "x"))
        written(root, {f"{below}.gitignore": "\n".join(text) for below, text in ignored.items()})
        git(root, "init", "-q")
        present = [path for path in sorted(tracked) if (root / path).is_file()]
        if present:
            git(root, "--literal-pathspecs", "add", "-f", *present)
        folder = root / at if (root / at).is_dir() and not is_ignored(root, at) else root
        assert selected(folder) == git_selected(folder)


def test_a_repository_within_the_folder_keeps_what_it_excludes(tmp_path):
    root = written(tmp_path, {"a": "x", "lib/.env": "x", "lib/b": "x"})
    git(root, "init", "-q")
    git(root, "init", "-q", "lib")
    (root / "lib/.git/info/exclude").write_text(".env\n")
    assert selected(root) == {"a", "lib/b"}


def test_no_program_that_a_repository_names_is_started(tmp_path):
    root, trace = written(tmp_path / "repo", {"in/a": "x", "out/b": "y"}), tmp_path / "started"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trace}\nexit 1\n")
    program.chmod(0o755)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    git(root, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(root, "sparse-checkout", "set", "in")
    missing = git(root, "rev-parse", "HEAD:out").strip()
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": "ssh://host/x",
        "remote.origin.promisor": "true",
        "core.sshCommand": str(program),
        "core.fsmonitor": str(program),
    }
    for name, value in settings.items():
        git(root, "config", name, value)
    (root / ".git/objects" / missing[:2] / missing[2:]).unlink()
    assert selected(root) == {"in/a"}
    assert not trace.exists()


def test_a_hook_of_another_repository_changes_nothing(tmp_path, monkeypatch):
    root = written(tmp_path / "repo", {"a.key": "x", ".gitignore": "*.key"})
    git(root, "init", "-q")
    git(root, "add", "-f", "a.key")
    (root / ".git/info/exclude").write_text(".gitignore\n")
    git(tmp_path, "init", "-q", "other")
    for name in ("GIT_DIR", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert selected(root) == {"a.key"}


# In a process of its own: importing SkyPilot leaves threads and log handlers behind.
_SKYPILOT = """
import json, sys
from sky.data.storage_utils import get_excluded_files_from_skyignore
for folder in sys.stdin:
    print("found", json.dumps(get_excluded_files_from_skyignore(folder.rstrip())), flush=True)
"""


@pytest.fixture(scope="module")
def excluded_by_skypilot(tmp_path_factory):
    """Return a function that lists what SkyPilot excludes from a folder with a .skyignore."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SKYPILOT],
        env={**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def ask(folder: Path) -> set[str]:
        process.stdin.write(f"{folder}\n")
        process.stdin.flush()
        answer = next(line for line in process.stdout if line.startswith("found "))
        # "." is what it makes of a line "/", and is nothing to leave out.
        return {path.rstrip("/") for path in json.loads(answer.removeprefix("found "))} - {"."}

    yield ask
    process.communicate()


SKY_PIECES = st.sampled_from(
    ["a", "b", "ab", "*", "?", "/", "/", ".key", "[ab]", "[!a]", "[", "**/", "***", "/**", "!", ".",
     "\\", "ä"]
)  # fmt: skip
SKY_LINES = (
    st.lists(SKY_PIECES, min_size=1, max_size=5)
    .map("".join)
    .filter(lambda line: ".." not in line.strip().split("/"))
)


@settings(max_examples=60, deadline=None)
@given(
    paths=st.sets(PATHS, min_size=3, max_size=10),
    lines=st.lists(SKY_LINES, min_size=1, max_size=4),
)
@example({"a/b/a", "b/a", "a.key"}, ["b/a", "!a.key", "/a.key"])
@example({"a", "a.key", "b"}, ["**/*"])
@example({"a", "b/a", "a.key"}, ["b/**/"])
@example({"a", "b/a", "a.key"}, ["***/a"])
@example({"a", "b/a", "a.key"}, ["a/**"])
@example({"a", "b/a", "a.key"}, ["[a]/**"])
@example({"a", "b/a", "ab"}, ["[/b]", "b/./a"])
def test_by_a_skyignore_stays_behind_what_skypilot_leaves(excluded_by_skypilot, paths, lines):
    with TemporaryDirectory() as place:
        root = written(Path(place), dict.fromkeys(sorted(paths), "x"))
        (root / ".skyignore").write_text("\n".join(lines))
        excluded = excluded_by_skypilot(root)
        every = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        left = {path for path in every if excluded & {path, *map(str, Path(path).parents)}}
        assert not selected(root) & left
        # SkyPilot's glob passes over names that begin with a dot; its rsync and we do not.
        dotted = {path for path in every if "/." in f"/{path}"}
        assert selected(root) - dotted == every - left - dotted
