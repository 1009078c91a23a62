"""The sampler of this host, on its own thread: no error here affects the job."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.probes import host_readings
from monarch_client.runner.vocabulary.carriers import NONE
from monarch_client.runner.vocabulary.frames import sample_line

if TYPE_CHECKING:
    from typing import Any, Callable

    from monarch_client.runner.place import Place

# So that a short job has something to show as well.
FIRST_S = 1.0
_PROC = Path("/proc")


class Sampler:
    """A thread that takes a sample every `metrics_s` seconds; 0 switches it off."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._interval_s = place.config.metrics_s
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start the thread. A slow reading delays nothing else."""
        if self._interval_s > 0 and self._place.config.carrier != NONE:
            threading.Thread(target=self._sample, daemon=True, name="sampler").start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopping.set()

    def _sample(self) -> None:
        before = host_readings.read_counters(_PROC, time.monotonic())
        ask_gpus = _gpus_of_this_host()
        pause_s = min(FIRST_S, self._interval_s)
        while not self._stopping.wait(pause_s):
            now = host_readings.read_counters(_PROC, time.monotonic())
            content: dict[str, Any] = {
                **host_readings.rates(before, now),
                **host_readings.amounts(_PROC, self._place.folder.workdir),
                "gpus": _answer_of(ask_gpus),
            }
            rank = self._place.rank
            self._place.samples.put(rank, sample_line(rank, content))
            before, pause_s = now, self._interval_s


def _gpus_of_this_host() -> Callable[[], list[dict[str, Any]]]:
    """Return a function that reads the GPUs; an empty list if NVML cannot be used."""
    try:
        # Not before there is a thread for it: loading a driver's library takes its time. A Python
        # may have been built without ctypes.
        from monarch_client.runner.probes.nvml import Nvml  # noqa: PLC0415

        return Nvml().gpus
    except Exception:  # noqa: BLE001
        return list


def _answer_of(ask: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    try:
        return ask()
    except Exception:  # noqa: BLE001 - an odd library costs its figures, not the others
        return []
