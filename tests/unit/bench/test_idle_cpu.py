"""The processor time of processes, as the kernel counts it."""

from __future__ import annotations

import os
import time

from bench.cpu_time import cpu_seconds
from bench.idle_cpu import percent_of_core


def test_the_processor_time_of_a_process_is_what_the_kernel_counts():
    ticks = 1 / os.sysconf("SC_CLK_TCK")
    assert abs(cpu_seconds(os.getpid()) - sum(os.times()[:4])) <= 3 * ticks


def test_a_process_that_has_ended_counts_no_more():
    assert cpu_seconds(2**22 + 1) == 0.0


def test_a_part_that_uses_half_of_the_time_uses_half_of_a_core():
    began = time.monotonic()
    parts = percent_of_core(lambda: {"web": (time.monotonic() - began) / 2}, 0.01)
    assert abs(parts["web"] - 50) < 5
