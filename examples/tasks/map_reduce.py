"""A map-reduce: sorts random numbers, 1 GB by default, that are never in the driver.

python map_reduce.py --megabytes 200            on this machine
"""

from __future__ import annotations

import itertools
import sys
import time
from typing import NamedTuple

import numpy as np
from hosts import open_context, options

from monarch_client.context import ObjectRef, get_job_context


class Summary(NamedTuple):
    """A sorted range of the numbers, in a few bytes."""

    count: int
    total: int
    first: int
    last: int
    in_order: bool


def split(seed: int, count: int, ranges: int) -> tuple[int, list[ObjectRef]]:
    """Map: make numbers; store those of each range; return their sum and the references."""
    numbers = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
    width = np.uint64(2**64 // ranges + 1)
    range_of = (numbers // width).astype(np.uint16)
    grouped = numbers[np.argsort(range_of, kind="stable")]
    ends = np.cumsum(np.bincount(range_of, minlength=ranges))
    context = get_job_context()
    pieces = [context.put(piece) for piece in np.split(grouped, ends[:-1])]
    return checksum(numbers), pieces


def merge(*pieces: np.ndarray) -> np.ndarray:
    """Reduce: sort the numbers of one range."""
    merged = np.concatenate(pieces)
    merged.sort()
    return merged


def summarize(numbers: np.ndarray) -> Summary:
    """Describe a range after the sort."""
    in_order = bool((numbers[1:] >= numbers[:-1]).all())
    return Summary(len(numbers), checksum(numbers), int(numbers[0]), int(numbers[-1]), in_order)


def checksum(numbers: np.ndarray) -> int:
    """Return the sum of the numbers modulo 2**64, whatever their order is."""
    return int(numbers.sum(dtype=np.uint64))


def main() -> int:
    """Return 0 when the numbers are sorted, and none is missing."""
    parser = options(__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--parts", type=int, default=16)
    arguments = parser.parse_args()
    parts = arguments.parts
    count = arguments.megabytes * 2**20 // 8 // parts
    begin = time.monotonic()
    with open_context(arguments.mesh) as context:
        maps = [context.create_task(split, (seed, count, parts)) for seed in range(parts)]
        totals, pieces = zip(*context.get(maps), strict=True)
        del maps  # with the last reference, memory is free again
        ranges = [context.create_task(merge, of_range) for of_range in zip(*pieces, strict=True)]
        del pieces
        checks = [context.create_task(summarize, (each,)) for each in ranges]
        found: list[Summary] = context.get(checks)
    size = sum(each.count for each in found) * 8 / 2**20
    print(f"sorted {size:.0f} MB in {len(found)} ranges: {time.monotonic() - begin:.1f} s")
    in_order = all(each.in_order for each in found) and all(
        before.last <= after.first for before, after in itertools.pairwise(found)
    )
    complete = (
        sum(each.count for each in found) == count * parts
        and sum(each.total for each in found) % 2**64 == sum(totals) % 2**64
    )
    print(f"in order: {in_order}, complete: {complete}")
    return 0 if in_order and complete else 1


if __name__ == "__main__":
    sys.exit(main())
