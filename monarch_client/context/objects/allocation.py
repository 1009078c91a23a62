"""Ranges of one span of bytes: best fit, and free neighbors are merged.

Pure: the arena and the spill file call it, and do the work on memory and disk themselves.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from monarch_client.context.objects.serialization import ALIGNMENT, aligned


class Allocator:
    """The allocated and free ranges of a span of bytes. All offsets are multiples of 64."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity // ALIGNMENT * ALIGNMENT
        self.used = 0
        self._allocated: dict[int, int] = {}
        self._by_size: list[tuple[int, int]] = []  # (size, offset) of free ranges, sorted
        self._by_offset: dict[int, int] = {}
        self._by_end: dict[int, int] = {}
        if self.capacity:
            self._add_free(0, self.capacity)

    @property
    def largest_free(self) -> int:
        """The size of the largest free range."""
        return self._by_size[-1][0] if self._by_size else 0

    @property
    def high_water(self) -> int:
        """The end of the last allocated range."""
        tail = self._by_end.get(self.capacity)
        return self.capacity if tail is None else tail

    def allocate(self, size: int) -> int | None:
        """Return the offset of a range of `size` bytes, or None if no free range is as large.

        It takes the smallest free range that fits, and the lowest of these: low ranges are those
        whose memory has been used before.
        """
        size = max(aligned(size), ALIGNMENT)
        index = bisect_left(self._by_size, (size, 0))
        if index == len(self._by_size):
            return None
        found, offset = self._by_size[index]
        self._remove_free(offset, found)
        if found > size:
            self._add_free(offset + size, found - size)
        self._allocated[offset] = size
        self.used += size
        return offset

    def free(self, offset: int) -> None:
        """Free an allocated range, and merge it with free neighbors. KeyError: not allocated."""
        size = self._allocated.pop(offset)
        self.used -= size
        after = self._by_offset.get(offset + size)
        if after is not None:
            self._remove_free(offset + size, after)
            size += after
        before = self._by_end.get(offset)
        if before is not None:
            length = offset - before
            self._remove_free(before, length)
            offset, size = before, size + length
        self._add_free(offset, size)

    def free_ranges(self) -> list[tuple[int, int]]:
        """Return the free ranges as (offset, size), in order."""
        return sorted(self._by_offset.items())

    def _add_free(self, offset: int, size: int) -> None:
        insort(self._by_size, (size, offset))
        self._by_offset[offset] = size
        self._by_end[offset + size] = offset

    def _remove_free(self, offset: int, size: int) -> None:
        del self._by_size[bisect_left(self._by_size, (size, offset))]
        del self._by_offset[offset]
        del self._by_end[offset + size]
