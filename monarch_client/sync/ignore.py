"""What stays behind when a folder is packed: caches, and what `.mportalignore` names."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

IGNORE_FILE = ".mportalignore"
# Nobody wants these on a node; all can be made again there.
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


@dataclass(frozen=True, slots=True)
class Ignore:
    """Patterns after fnmatch, where * also matches /.

    A pattern with a slash inside or in front is matched against the whole path, any other against
    every name; one with a slash at its end matches folders alone. There is no way to take back.
    """

    patterns: tuple[str, ...] = ALWAYS_IGNORED

    @classmethod
    def of(cls, folder: Path) -> Ignore:
        """The patterns that hold in `folder`."""
        file = folder / IGNORE_FILE
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        own = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        return cls((*ALWAYS_IGNORED, *own))

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the relative `path` stays behind."""
        return any(_matches(pattern, path, is_folder=is_folder) for pattern in self.patterns)


def _matches(pattern: str, path: str, *, is_folder: bool) -> bool:
    if pattern.endswith("/"):
        pattern = pattern.rstrip("/")
        if not is_folder:
            return False
    if "/" in pattern:
        return fnmatchcase(path, pattern.removeprefix("/"))
    return fnmatchcase(path.rpartition("/")[2], pattern)
