"""The allocator against a model: no overlaps, all merged, smallest fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monarch_client.context.objects.allocation import Allocator

CAPACITY = 64 * 40

steps = st.lists(
    st.tuples(st.just("allocate"), st.integers(0, 64 * 12))
    | st.tuples(st.just("free"), st.integers(0, 100)),
    max_size=60,
)


def gaps_between(allocated: dict[int, int]) -> list[tuple[int, int]]:
    """List the ranges between the allocated ones, which touch no other free range."""
    gaps, at = [], 0
    for offset, size in [*sorted(allocated.items()), (CAPACITY, 0)]:
        if offset > at:
            gaps.append((at, offset - at))
        at = offset + size
    return gaps


@given(steps)
def test_ranges_never_overlap_and_free_ones_are_merged(steps: list[tuple[str, int]]) -> None:
    allocator, allocated = Allocator(CAPACITY), {}
    for action, number in steps:
        gaps = gaps_between(allocated)
        if action == "allocate":
            rounded = max(-(-number // 64) * 64, 64)
            fits = [(size, offset) for offset, size in gaps if size >= rounded]
            offset = allocator.allocate(number)
            assert offset == (min(fits)[1] if fits else None)
            if offset is not None:
                allocated[offset] = rounded
        elif allocated:
            offset = sorted(allocated)[number % len(allocated)]
            allocator.free(offset)
            del allocated[offset]
        gaps = gaps_between(allocated)
        assert allocator.free_ranges() == gaps
        assert allocator.used == sum(allocated.values())
        assert allocator.high_water == max((a + s for a, s in allocated.items()), default=0)


def test_every_offset_is_a_multiple_of_64() -> None:
    allocator = Allocator(64 * 1000 + 63)
    offsets = [allocator.allocate(size) for size in (1, 63, 64, 65, 1000)]
    assert offsets == [0, 64, 128, 192, 320]
    assert allocator.capacity == 64 * 1000
