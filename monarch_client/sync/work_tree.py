"""Query git about a folder: the work tree around it, and its committed files."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

# A repository's own settings must not start programs, and its owner may be another user, as on a
# shared file system.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
# In a partial clone git would fetch what it lacks, with the programs that the repository names.
_NO_FETCHING = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
# As a hook of git has them, of another repository.
_REDIRECTIONS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
)
_SECONDS = 60


@dataclass(frozen=True)
class WorkTree:
    """The work tree around a folder; `below` is the folder's path in it, with a slash at its end.

    Paths of `tracked` start at the folder. Without the program git none are known.
    """

    root: Path
    below: str
    tracked: frozenset[str] = frozenset()
    # Ignore files outside of the work tree, the weakest first, with how they are called.
    ignore_files: tuple[tuple[str, Path], ...] = field(default=())

    @cached_property
    def tracked_folders(self) -> frozenset[str]:
        """Return the folders that hold tracked files, at any depth."""
        found: set[str] = set()
        for path in self.tracked:
            while (path := path.rpartition("/")[0]) and path not in found:
                found.add(path)
        return frozenset(found)


def work_tree_of(folder: Path) -> WorkTree | None:
    """Return the work tree that contains `folder`, or None."""
    folder = folder.resolve()
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if root is None:
        return None
    below = "" if root == folder else f"{folder.relative_to(root).as_posix()}/"
    tracked = _git(folder, "ls-files", "-z", "--cached", "--recurse-submodules")
    names = frozenset(os.fsdecode(name) for name in (tracked or b"").split(b"\0") if name)
    return WorkTree(root, below, names, tuple(_ignore_files(folder, root)))


def _ignore_files(folder: Path, root: Path) -> list[tuple[str, Path]]:
    known = _git(folder, "config", "--path", "core.excludesFile")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    everywhere = _path(known) or home / "git" / "ignore"
    return [(str(everywhere), everywhere), (".git/info/exclude", exclude_file(folder, root))]


def exclude_file(folder: Path, root: Path) -> Path:
    """Return info/exclude of the repository at `root`, which contains `folder`."""
    found = _path(_git(folder, "rev-parse", "--git-path", "info/exclude"))
    return folder / found if found else root / ".git" / "info" / "exclude"


def _path(output: bytes | None) -> Path | None:
    text = os.fsdecode((output or b"").removesuffix(b"\n"))
    return Path(text) if text else None


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints, or None where there is no git or it has no answer."""
    own = {key: value for key, value in os.environ.items() if key not in _REDIRECTIONS}
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(folder), *arguments],
            env={**own, **_NO_FETCHING},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
