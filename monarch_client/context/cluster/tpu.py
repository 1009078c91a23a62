"""TPU slices of a call: their type and number, and its retries."""

from __future__ import annotations

from dataclasses import dataclass

from monarch_client.spec.tpu import hosts_of_slice, tpu_accelerator


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
        tpu_accelerator(self.tpu_type)
        if self.num_slices < 1:
            raise ValueError(f"num_slices is at least 1, and not {self.num_slices}")
        for name in ("max_retries_preemption", "max_retries_failure"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is at least 0, and not {getattr(self, name)}")

    @property
    def accelerator(self) -> str:
        """SkyPilot's name of the type, such as "tpu-v4-32"."""
        return tpu_accelerator(self.tpu_type)

    @property
    def host_count(self) -> int:
        """The number of hosts of all slices."""
        return self.num_slices * hosts_of_slice(self.tpu_type)
