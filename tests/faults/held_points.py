"""The test's side of `monarch_client.crash_points`: holding a process at a point."""

from __future__ import annotations

from pathlib import Path

from tests.waiting import eventually

RANKS = (0, 1)


class HeldPoints:
    """Points below one directory, which the portal names in MPORTAL_CRASH_POINTS."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for place in (directory, *(self.place(f"runner.{rank}", rank) for rank in RANKS)):
            place.mkdir()
            place.chmod(0o777)  # runners take files away under user ids of their own

    def place(self, point: str, rank: int) -> Path:
        """Return the directory in which `point` is held; that of one rank for a runner's."""
        return self.directory / f"rank-{rank}" if point.startswith("runner.") else self.directory

    def hold(self, point: str, rank: int = 0) -> None:
        """Hold the next process that reaches the point."""
        (self.place(point, rank) / point).touch()

    def holder(self, point: str, rank: int = 0) -> int | None:
        """Return the process that is held at the point; None if there is none."""
        found = list(self.place(point, rank).glob(f"{point}.at-*"))
        return int(found[0].name.rpartition("-")[2]) if found else None

    def wait_for(self, point: str, rank: int = 0, *, timeout_s: float = 40) -> int:
        """Wait until a process is held at the point and return its id."""
        reached = eventually(lambda: self.holder(point, rank) is not None, timeout_s=timeout_s)
        assert reached, f"no process reached {point}"
        return self.holder(point, rank) or 0

    def let_go(self) -> None:
        """Hold nothing any more; processes that are held anywhere continue."""
        for place in (self.directory, *(self.place("runner.", rank) for rank in RANKS)):
            # A process that gets to a point at this moment renames the file of the point.
            while files := [file for file in place.iterdir() if not file.is_dir()]:
                for file in files:
                    file.unlink(missing_ok=True)
