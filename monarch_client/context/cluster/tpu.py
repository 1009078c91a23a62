"""TPU slices: their types, hosts and retries."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PREFIX = "tpu-"
_TYPE = re.compile(r"(v[0-9]+[a-z]*)-([1-9][0-9]{0,5})")
# SkyPilot and Google Cloud name v5e this way.
_NAMES = {"v5e": "v5litepod"}
# The number in the name counts the chips of these, and the cores of all others.
_COUNTED_IN_CHIPS = frozenset({"v5litepod", "v6e"})
_CHIPS_OF_A_HOST, _CORES_OF_A_HOST = 4, 8
# Up to this size a slice that is counted in chips is one host.
_CHIPS_OF_ONE_HOST = 8


@dataclass(frozen=True)
class TpuRunConfig:
    """The TPU slices of a call, and its retries.

    `tpu_type` is a type such as "v4-32". `max_retries_preemption`: how often the call is started
    again after hosts were lost. `max_retries_failure`: after other failures, except an error of the
    function itself.
    """

    tpu_type: str
    num_slices: int = 1
    max_retries_preemption: int = 10_000
    max_retries_failure: int = 10

    def __post_init__(self) -> None:
        _parsed(self.tpu_type)
        if self.num_slices < 1:
            raise ValueError(f"num_slices is at least 1, and not {self.num_slices}")
        for name in ("max_retries_preemption", "max_retries_failure"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is at least 0, and not {getattr(self, name)}")

    @property
    def accelerator(self) -> str:
        """SkyPilot's name of the type, such as "tpu-v4-32"."""
        generation, size = _parsed(self.tpu_type)
        return f"{_PREFIX}{generation}-{size}"

    @property
    def host_count(self) -> int:
        """The number of hosts of all slices."""
        generation, size = _parsed(self.tpu_type)
        if generation not in _COUNTED_IN_CHIPS:
            return self.num_slices * max(1, size // _CORES_OF_A_HOST)
        if size <= _CHIPS_OF_ONE_HOST:
            return self.num_slices
        return self.num_slices * (size // _CHIPS_OF_A_HOST)


def _parsed(tpu_type: str) -> tuple[str, int]:
    """Return the generation of a type and the number in it."""
    found = _TYPE.fullmatch(tpu_type.lower().removeprefix(_PREFIX))
    if found is None:
        raise ValueError(f"{tpu_type!r} is no TPU type. Write it like v4-32 or v6e-256.")
    return _NAMES.get(found[1], found[1]), int(found[2])
