"""The speed of this machine now, relative to reference values that are checked in.

The same machine may be three times slower an hour later, so figures of two runs cannot be compared
as they are. Each figure therefore carries `machine_factor`: the geometric mean of three speeds,
each divided by its reference value. 1.0 is the reference machine at its best, 2.0 is twice as fast,
0.5 is half as fast. The three are a fixed loop in pure Python, a copy of memory larger than
caches, and a `SELECT 1` over the Unix socket of an empty PostgreSQL.

`make bench NAME=machine_factor` prints the factor now. On a quiet machine,
`python -m bench.machine_factor --reference > bench/machine_reference.json` replaces the reference.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from bench import bare_servers
from bench.machine import machine

REFERENCE_FILE = Path(__file__).with_name("machine_reference.json")
UNITS = {"python": "loops/s", "memcpy": "GB/s", "postgresql": "round trips/s"}
# Together half a second on a quiet machine; a pause of the scheduler does not move the median.
SAMPLES = 9
REFERENCE_SAMPLES = 200
# A run whose two factors differ by more than this ratio is unsteady.
STEADY_RATIO = 1.3

LOOP_STEPS = 100_000
COPIED_BYTES = 64 * 1024 * 1024
ROUND_TRIPS = 200


@dataclass(frozen=True, slots=True)
class Speeds:
    """One value for each of the three probes, larger is faster; or ratios of two such values."""

    python: float
    memcpy: float
    postgresql: float

    def relative_to(self, reference: Speeds) -> Speeds:
        """Divide each speed by that of `reference`."""
        ours, theirs = asdict(self), asdict(reference)
        return Speeds(**{name: ours[name] / theirs[name] for name in ours})

    @property
    def factor(self) -> float:
        """The geometric mean of the three: of ratios, the machine factor."""
        return statistics.geometric_mean(asdict(self).values())


def speeds_now() -> Speeds:
    """Measure the machine: the median of several samples."""
    return middle(samples(SAMPLES))


def samples(count: int) -> list[Speeds]:
    """Measure `count` times. PostgreSQL stops at the end: it would take memory from the figure."""
    source, target = (bytearray(b"\1") * COPIED_BYTES for _ in range(2))
    with (
        bare_servers.running(durable=False) as servers,
        psycopg.connect(servers.postgres.url(), autocommit=True) as session,
    ):
        return [
            Speeds(
                1 / _seconds(_loop),
                COPIED_BYTES / 1e9 / _seconds(lambda: _copy(source, target)),
                ROUND_TRIPS / _seconds(lambda: _ask(session)),
            )
            for _ in range(count)
        ]


def middle(found: Sequence[Speeds]) -> Speeds:
    """Return the median of each speed: what the machine gives at the moment."""
    return _combined(statistics.median, found)


def best(found: Sequence[Speeds]) -> Speeds:
    """Return the greatest of each speed: what the machine gives when nothing else runs."""
    return _combined(max, found)


def mean(found: Sequence[Speeds]) -> Speeds:
    """Return the arithmetic mean of each speed."""
    return _combined(statistics.fmean, found)


def machine_fields(before: Speeds, after: Speeds, reference: Speeds) -> dict[str, Any]:
    """Return what a figure's line says about the speed of the machine during its run.

    `before` and `after` were measured at the start and at the end of the run.
    """
    ends = [each.relative_to(reference) for each in (before, after)]
    parts = mean(ends)
    drift = math.exp(abs(math.log(ends[0].factor / ends[1].factor)))
    return {
        "machine_factor": round(parts.factor, 3),
        "machine_parts": {name: round(value, 3) for name, value in asdict(parts).items()},
        "machine_unsteady": drift > STEADY_RATIO,
    }


def reference_speeds() -> Speeds:
    """Read the reference values that are checked in."""
    content = json.loads(REFERENCE_FILE.read_text())
    return Speeds(**content["speeds"])


def reference_content(found: Sequence[Speeds]) -> dict[str, Any]:
    """Return the content of the reference file that these samples make."""
    speeds = {name: float(f"{value:.4g}") for name, value in asdict(best(found)).items()}
    return {
        "taken": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "speeds": speeds,
        "units": UNITS,
    }


def _combined(how: Callable[[Iterable[float]], float], found: Sequence[Speeds]) -> Speeds:
    rows = [asdict(each) for each in found]
    return Speeds(**{name: how([row[name] for row in rows]) for name in UNITS})


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _loop() -> None:
    total, table = 0, {}
    for step in range(LOOP_STEPS):
        total = (total * 31 + step) & 0xFFFFFFFF
        table[step & 1023] = total


def _copy(source: bytearray, target: bytearray) -> None:
    memoryview(target)[:] = source


def _ask(session: psycopg.Connection[Any]) -> None:
    for _ in range(ROUND_TRIPS):
        session.execute("SELECT 1")


def main() -> None:
    """Print the factor now, or the content of the reference file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", action="store_true", help="print what to check in")
    if parser.parse_args().reference:
        print(json.dumps(reference_content(samples(REFERENCE_SAMPLES)), indent=2))
    else:
        print(json.dumps(machine_fields(speeds_now(), speeds_now(), reference_speeds())))


if __name__ == "__main__":
    main()
