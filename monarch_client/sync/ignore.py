"""What stays behind when a folder is packed: caches, and what its ignore file names."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# The first that is there counts; the second is SkyPilot's.
IGNORE_FILES = (".mportalignore", ".skyignore")
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
        files = [folder / name for name in IGNORE_FILES if (folder / name).is_file()]
        lines = files[0].read_text(encoding="utf-8").splitlines() if files else []
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
