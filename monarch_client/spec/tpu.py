"""TPU slices as accelerators: SkyPilot's names of their types, and the hosts of each."""

from __future__ import annotations

import re

_PREFIX = "tpu-"
_TYPE = re.compile(r"(v[0-9]+[a-z]*)-([1-9][0-9]{0,5})")
# SkyPilot and Google Cloud name v5e this way.
_NAMES = {"v5e": "v5litepod"}
# The number in the name counts the chips of these, and the cores of all others.
_COUNTED_IN_CHIPS = frozenset({"v5litepod", "v6e"})
_CHIPS_OF_A_HOST, _CORES_OF_A_HOST = 4, 8
# Up to this size a slice that is counted in chips is one host.
_CHIPS_OF_ONE_HOST = 8


def tpu_accelerator(tpu_type: str) -> str:
    """Return SkyPilot's name of a type, such as "tpu-v4-32". ValueError: it is none."""
    generation, size = _parsed(tpu_type)
    return f"{_PREFIX}{generation}-{size}"


def hosts_of_slice(tpu_type: str) -> int:
    """Return the number of hosts of one slice. ValueError: it is no type of TPU."""
    generation, size = _parsed(tpu_type)
    if generation not in _COUNTED_IN_CHIPS:
        return max(1, size // _CORES_OF_A_HOST)
    return 1 if size <= _CHIPS_OF_ONE_HOST else size // _CHIPS_OF_A_HOST


def hosts_of_node(accelerator: str) -> int:
    """Return the number of hosts of a node with that accelerator: those of a slice, else one."""
    if not accelerator.lower().startswith(_PREFIX):
        return 1
    try:
        return hosts_of_slice(accelerator)
    except ValueError:
        return 1


def _parsed(tpu_type: str) -> tuple[str, int]:
    """Return the generation of a type and the number in it."""
    found = _TYPE.fullmatch(tpu_type.lower().removeprefix(_PREFIX))
    if found is None:
        raise ValueError(f"{tpu_type!r} is no TPU type. Write it like v4-32 or v6e-256.")
    return _NAMES.get(found[1], found[1]), int(found[2])
