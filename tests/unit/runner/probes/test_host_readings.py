"""Readings of a host from texts as kernels write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.runner.probes.host_readings import (
    Reading,
    amounts,
    cpu_times,
    memory,
    rates,
    read_counters,
    traffic,
)

STAT = "cpu  100 10 40 800 50 0 0 0 7 0\ncpu0 50 5 20 400 25 0 0 0 7 0\nintr 1\n"
MEMINFO = """\
MemTotal:       16000 kB
MemFree:         1000 kB
MemAvailable:    4000 kB
HugePages_Total: 0
"""
NET = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo: 999999    1    0    0    0     0          0         0   999999    1    0
  eth0: 1000      9    0    0    0     0          0         0     2000    8    0
  ib0:500       9    0    0    0     0          0         0     700    8    0
docker0: 77     9    0    0    0     0          0         0       77    8    0
vethab1: 77     9    0    0    0     0          0         0       77    8    0
"""


def test_a_processor_that_waits_is_not_busy() -> None:
    assert cpu_times(STAT) == (150, 1000)


@pytest.mark.parametrize("text", ["", "cpu", "cpu  1 2", "cpu0 1 2 3 4 5", "cpu a b c d e f"])
def test_what_is_no_processor_line_reports_nothing(text: str) -> None:
    assert cpu_times(text) is None


def test_memory_that_the_kernel_would_give_back_is_free() -> None:
    assert memory(MEMINFO) == (12_000 * 1024, 16_000 * 1024)
    assert memory("MemTotal: 8 kB\nMemFree: 2 kB\n") == (6 * 1024, 8 * 1024)
    assert memory("MemFree: 2 kB") is None


def test_only_traffic_that_leaves_the_host_counts_and_counts_once() -> None:
    assert traffic(NET) == (1500, 2700)
    assert traffic("") is None


def test_rates_are_what_happened_between_two_readings() -> None:
    before, now = Reading(10.0, (100, 1000), (500, 0)), Reading(12.0, (150, 1200), (2500, 10))
    assert rates(before, now) == {"cpu": 25.0, "net_in": 1000, "net_out": 5}


def test_a_counter_that_began_anew_is_not_negative_and_silence_is_not_zero() -> None:
    again = rates(Reading(1.0, (90, 100), (500, 500)), Reading(2.0, (95, 200), (3, 600)))
    assert again == {"cpu": 5.0, "net_in": 0, "net_out": 100}
    nothing = {"cpu": None, "net_in": None, "net_out": None}
    assert rates(Reading(1.0, None, None), Reading(2.0, (1, 2), (3, 4))) == nothing
    assert rates(Reading(1.0, (1, 2), None), Reading(1.0, (1, 2), (3, 4))) == nothing


def test_a_host_that_reports_nothing_harms_nothing(tmp_path: Path) -> None:
    assert read_counters(tmp_path, 1.0) == Reading(1.0, None, None)
    reported = amounts(tmp_path, tmp_path / "not there")
    assert [reported[name] for name in ("memory_used", "memory_total", "disk_total")] == [None] * 3


def test_this_very_host_reports_all_of_it(tmp_path: Path) -> None:
    reading = read_counters(Path("/proc"), 1.0)
    reported = amounts(Path("/proc"), tmp_path)
    assert reading.busy_and_all
    assert 0 < reported["memory_used"] < reported["memory_total"]
    assert 0 <= reported["disk_used"] <= reported["disk_total"]
    assert reported["cpus"] >= 1
