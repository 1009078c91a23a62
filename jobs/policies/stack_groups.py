"""Equal stacks of several ranks in one group: the rank that differs is often the cause. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_THREAD, _MAIN, _FRAME = "Thread ", '"MainThread"', "    "
_PLACE = re.compile(r" \((?P<file>[^()]*?)(?::\d+)?\)$")
# Calls of the standard library that only wait: their caller says what for.
_WAITING = re.compile(
    r"(?:^|/)(?:threading|queue|selectors|socket|ssl|subprocess|asyncio/\w+"
    r"|concurrent/futures/\w+|multiprocessing/\w+)\.py$"
)


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Processes whose main threads have equal stacks; `frames`: the innermost call first."""

    ranks: tuple[int, ...]
    processes: int
    frames: tuple[str, ...]

    @property
    def where(self) -> str:
        """The call that says most: the innermost one that does not only wait for another."""
        telling = (frame for frame in self.frames if not _only_waits(frame))
        return next(telling, self.frames[0])


def stack_groups(texts: Iterable[tuple[int, str]]) -> list[StackGroup]:
    """Group the dumps (rank, text) of processes by their main threads, the largest group first."""
    ranks: dict[tuple[str, ...], list[int]] = {}
    for rank, text in texts:
        if frames := main_frames(text):
            ranks.setdefault(frames, []).append(rank)
    groups = [
        StackGroup(tuple(sorted(set(found))), len(found), frames) for frames, found in ranks.items()
    ]
    return sorted(groups, key=lambda group: (-len(group.ranks), group.ranks))


def main_frames(text: str) -> tuple[str, ...]:
    """Return the calls of the main thread in py-spy's dump of a process, else of the first."""
    threads: list[tuple[bool, list[str]]] = []
    for line in text.splitlines():
        if line.startswith(_THREAD):
            threads.append((_MAIN in line, []))
        elif line.startswith(_FRAME) and threads:
            threads[-1][1].append(line.strip())
    main = next((frames for is_main, frames in threads if is_main), None)
    return tuple(main or (threads[0][1] if threads else ()))


def _only_waits(frame: str) -> bool:
    place = _PLACE.search(frame)
    return place is not None and bool(_WAITING.search(place["file"]))
