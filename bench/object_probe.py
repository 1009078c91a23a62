"""`put` and `get` of arrays in a task context or in Ray: `python object_probe.py ours|ray`.

Run by `bench.context_objects`, in the environment of each, so it imports neither at the top. Its
last line is JSON: GB/s by figure, and those of memcpy into warm memory in the same process.
"""

from __future__ import annotations

import ctypes
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

SIZES = {"10mb": (10_000_000, 30), "1gb": (1_000_000_000, 3)}
STORE_BYTES = 3_000_000_000


def ours() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return `put` and `get` of a task context."""
    from monarch_client.context import JobContext  # noqa: PLC0415 - not in Ray's environment

    context = JobContext(object_store_bytes=STORE_BYTES)
    return context.put, context.get


def ray() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return `put` and `get` of Ray."""
    import ray  # noqa: PLC0415 - in its environment alone

    ray.init(num_cpus=1, object_store_memory=STORE_BYTES, include_dashboard=False)
    return ray.put, ray.get


def rate(work: Callable[[], Any], size: int, rounds: int, settle: Callable[[], Any]) -> float:
    """Return the median rate in GB/s; `settle` runs between the rounds, and is not timed."""
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
        del result
        settle()
    return size / statistics.median(times[1:]) / 1e9


def settle() -> None:
    """Let references that were dropped be released, in Ray also."""
    gc.collect()
    time.sleep(0.05)


def main() -> None:
    """Measure each size."""
    put, get = {"ours": ours, "ray": ray}[sys.argv[1]]()
    found = {}
    for name, (size, rounds) in SIZES.items():
        rows = np.ones(size, np.uint8)
        target = np.ones(size, np.uint8)

        def copy(rows: Any = rows, target: Any = target, size: int = size) -> None:
            ctypes.memmove(target.ctypes.data, rows.ctypes.data, size)

        found[f"memcpy_{name}_gbps"] = rate(copy, size, rounds, settle)
        found[f"put_{name}_gbps"] = rate(partial(put, rows), size, rounds, settle)
        ref = put(rows)

        def read_all(ref: Any = ref) -> int:
            return int(get(ref)[::4096].sum())

        found[f"get_{name}_gbps"] = rate(read_all, size, rounds, settle)
        del ref, target, rows
        settle()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
