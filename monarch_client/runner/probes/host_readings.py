"""Readings of a host from /proc: processor, memory, disk, network. Nothing here raises."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

# Traffic on these passes a real interface as well, or never leaves the host.
_NOT_OUTSIDE = ("lo", "veth", "docker", "br-", "virbr", "cni", "flannel", "cali")
_RECEIVED, _SENT = 0, 8
_IDLE, _IO_WAIT = 3, 4
# The columns beyond are counted in others already: time of guests.
_COLUMNS = 8


class Reading(NamedTuple):
    """Counters at one time; None where the host does not provide them."""

    at: float
    busy_and_all: tuple[int, int] | None
    received_and_sent: tuple[int, int] | None


def read_counters(proc: Path, at: float) -> Reading:
    """Read the counters; `at` is a monotonic time."""
    return Reading(at, cpu_times(_text(proc / "stat")), traffic(_text(proc / "net" / "dev")))


def rates(before: Reading, now: Reading) -> dict[str, Any]:
    """Return the rates between two readings: percent of all processors, bytes per second."""
    cpu = received = sent = None
    if before.busy_and_all and now.busy_and_all:
        busy, total = _differences(before.busy_and_all, now.busy_and_all)
        cpu = round(min(100.0, 100.0 * busy / total), 1) if total else None
    seconds = now.at - before.at
    if before.received_and_sent and now.received_and_sent and seconds > 0:
        came, went = _differences(before.received_and_sent, now.received_and_sent)
        received, sent = round(came / seconds), round(went / seconds)
    return {"cpu": cpu, "net_in": received, "net_out": sent}


def amounts(proc: Path, folder: Path) -> dict[str, Any]:
    """Return the used memory and the used space on the disk of `folder`, in bytes."""
    memory_used, memory_total = memory(_text(proc / "meminfo")) or (None, None)
    disk_used, disk_total = _disk(folder) or (None, None)
    return {
        "cpus": os.cpu_count(),
        "memory_used": memory_used,
        "memory_total": memory_total,
        "disk_used": disk_used,
        "disk_total": disk_total,
    }


def cpu_times(stat: str) -> tuple[int, int] | None:
    """Return (busy, all) in ticks from the first line of /proc/stat."""
    words = stat.partition("\n")[0].split()
    if len(words) <= _IDLE + 1 or words[0] != "cpu":
        return None
    ticks = _numbers(words[1 : _COLUMNS + 1])
    if not ticks:
        return None
    return sum(ticks) - sum(ticks[_IDLE : _IO_WAIT + 1]), sum(ticks)


def memory(meminfo: str) -> tuple[int, int] | None:
    """Return (used, total) in bytes; memory that the kernel can free at once is not used."""
    found = {}
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    total = found.get("MemTotal")
    free = found.get("MemAvailable", found.get("MemFree"))
    if total is None or free is None:
        return None
    return max(0, total - free), total


def traffic(net_dev: str) -> tuple[int, int] | None:
    """Return (received, sent) in bytes over the interfaces that lead outside."""
    received = sent = 0
    for line in net_dev.splitlines()[2:]:
        name, _, counters = line.partition(":")
        numbers = _numbers(counters.split())
        if len(numbers) > _SENT and not name.strip().startswith(_NOT_OUTSIDE):
            received += numbers[_RECEIVED]
            sent += numbers[_SENT]
    return (received, sent) if net_dev else None


def _disk(folder: Path) -> tuple[int, int] | None:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize, disk.f_blocks * disk.f_frsize


def _differences(before: tuple[int, int], now: tuple[int, int]) -> tuple[int, int]:
    # A counter that went back has begun anew: an interface was taken away.
    return max(0, now[0] - before[0]), max(0, now[1] - before[1])


def _numbers(words: list[str]) -> list[int]:
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
