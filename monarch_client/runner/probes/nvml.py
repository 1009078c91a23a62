"""Readings of the GPUs from NVIDIA's library; none, and no error, where it is missing.

Loaded at the first question: NVML comes with the driver, so most images have it and need no more.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import TYPE_CHECKING

from monarch_client.runner.vocabulary.limits import (
    MAX_CELSIUS,
    MAX_GPUS,
    MAX_MEMORY_BYTES,
    MAX_WATTS,
)

if TYPE_CHECKING:
    from typing import Any

LIBRARY = "libnvidia-ml.so.1"
# For tests: another file to load in its place.
LIBRARY_VARIABLE = "MPORTAL_NVML_LIBRARY"
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
_NAME_BYTES = 96
_ON_THE_CHIP = 0


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class Nvml:
    """The library, for one thread. A library that could not be loaded is not tried again."""

    def __init__(self) -> None:
        self._library = _loaded()

    def gpus(self) -> list[dict[str, Any]]:
        """Return the GPUs that this job sees; None for values that a GPU does not provide."""
        if self._library is None:
            return []
        count = ctypes.c_uint()
        if self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return []
        indices = range(min(count.value, MAX_GPUS))
        return [self._gpu(index) for index in visible(indices, os.environ.get(VISIBLE_VARIABLE))]

    def _gpu(self, index: int) -> dict[str, Any]:
        found: dict[str, Any] = dict.fromkeys(
            ("name", "utilization", "memory_used", "memory_total", "celsius", "watts")
        )
        found["index"] = index
        device = ctypes.c_void_p()
        # A newer or older library may not have them all.
        with contextlib.suppress(AttributeError):
            if not self._ask("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device)):
                self._describe(device, found)
        return found

    def _describe(self, device: ctypes.c_void_p, found: dict[str, Any]) -> None:
        name = ctypes.create_string_buffer(_NAME_BYTES)
        if not self._ask("nvmlDeviceGetName", device, name, ctypes.c_uint(_NAME_BYTES)):
            found["name"] = name.value.decode("utf-8", "replace")
        use, memory = _Utilization(), _Memory()
        if not self._ask("nvmlDeviceGetUtilizationRates", device, ctypes.byref(use)):
            found["utilization"] = min(100, use.gpu)
        is_silent = self._ask("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        # All ones mean that the GPU does not provide the value.
        if not is_silent and memory.used <= memory.total < MAX_MEMORY_BYTES:
            found["memory_used"], found["memory_total"] = memory.used, memory.total
        number, sensor = ctypes.c_uint(), ctypes.c_int(_ON_THE_CHIP)
        if not self._ask("nvmlDeviceGetTemperature", device, sensor, ctypes.byref(number)):
            found["celsius"] = number.value if number.value < MAX_CELSIUS else None
        if not self._ask("nvmlDeviceGetPowerUsage", device, ctypes.byref(number)):
            watts = round(number.value / 1000, 1)
            found["watts"] = watts if watts < MAX_WATTS else None

    def _ask(self, function: str, *arguments: Any) -> int:
        """Call a function of NVML; 0 is success."""
        return int(getattr(self._library, function)(*arguments))


def visible(indices: range, chosen: str | None) -> list[int]:
    """Return the indices of the job's GPUs, as CUDA_VISIBLE_DEVICES names them.

    Return all if it contains names or unknown numbers, which another tool may have set.
    """
    if chosen is None:
        return list(indices)
    words = [word.strip() for word in chosen.split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() and int(word) in indices for word in words):
        return list(indices)
    return sorted({int(word) for word in words})


def _loaded() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(os.environ.get(LIBRARY_VARIABLE) or LIBRARY)
        return None if library.nvmlInit_v2() else library
    except (OSError, AttributeError):
        return None
