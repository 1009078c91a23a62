"""One pass over a deep queue, from rows of PostgreSQL to decisions: its time and its memory.

`python -m bench.schedule.passes`. The machine is full, so that nothing starts and each pass is like
the last: what is timed is what `jobs.reconcilers.queue.run_pass` does then.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import django
from django.db.models import F

from bench.measure import Peer, figures, median, report, say
from bench.schedule import bare
from bench.schedule.ground import fill, servers

if TYPE_CHECKING:
    from jobs.queueing.queued_rows import QueuedRows

REPEATS = 5
PARTS = (25_000, 50_000)


@dataclass(frozen=True, slots=True)
class Pass:
    """The seconds of a pass's parts."""

    load_s: float
    plan_s: float
    report_s: float

    @property
    def seconds(self) -> float:
        """Seconds of the whole pass."""
        return self.load_s + self.plan_s + self.report_s


@dataclass(frozen=True, slots=True)
class Found:
    """The measurements of a process that only makes passes. Memory is its maximum, in MB."""

    first: Pass
    passes: list[Pass]
    bare: list[Pass]  # of `bench.schedule.bare`
    cold_load_s: float
    part_plans_s: dict[int, float]
    part_sorts_s: dict[int, float]
    before_mb: float
    most_mb: float


def measured() -> Found:
    """Measure passes over the database of this environment."""
    django.setup()
    # The reconciler's own parts: only after the set-up.
    import jobs.reconcilers.queue  # noqa: F401, PLC0415
    from jobs.ground.garbage import look_seldom  # noqa: PLC0415
    from jobs.queueing.queued_rows import QueuedRows  # noqa: PLC0415
    from jobs.queueing.snapshot import load_snapshot  # noqa: PLC0415
    from jobs.scheduling.plan import plan  # noqa: PLC0415

    look_seldom()  # as the worker does
    before_mb = _memory_mb("VmRSS")
    rows = QueuedRows()
    first, *passes = [_one_pass(rows, number) for number in range(REPEATS + 1)]
    most_mb = _memory_mb("VmHWM")
    bare_passes, part_sorts_s = _bare_passes()
    loads_s = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        snapshot = load_snapshot()
        loads_s.append(time.perf_counter() - began)
    part_plans_s = {}
    for count in PARTS:
        part = replace(snapshot, queued=snapshot.queued[:count])
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            plan(part)
            times.append(time.perf_counter() - began)
        part_plans_s[count] = median(times)
    return Found(
        first=first,
        passes=passes,
        bare=bare_passes,
        cold_load_s=median(loads_s),
        part_plans_s=part_plans_s,
        part_sorts_s=part_sorts_s,
        before_mb=before_mb,
        most_mb=most_mb,
    )


def _bare_passes() -> tuple[list[Pass], dict[int, float]]:
    """Measure the bare parts of passes, and bare sorts of the first so many rows."""
    found = []
    sorts_s: dict[int, list[float]] = {count: [] for count in PARTS}
    for _ in range(REPEATS):
        selected_s, rows = bare.select_rows()
        found.append(Pass(selected_s, bare.sort_s(rows), bare.compare_s(rows)))
        for count, seconds in sorts_s.items():
            seconds.append(bare.sort_s(rows[:count]))
    return found, {count: median(seconds) for count, seconds in sorts_s.items()}


def _one_pass(rows: QueuedRows, number: int) -> Pass:
    """Do what `run_pass` does if no job starts, and time its parts.

    Before it another hundredth of the rows has changed.
    """
    from jobs.actions.jobs.report_waits import changed_waits, report_waits  # noqa: PLC0415
    from jobs.ground.garbage import look_later  # noqa: PLC0415
    from jobs.models import Job  # noqa: PLC0415
    from jobs.queueing.pass_number import begin_pass  # noqa: PLC0415
    from jobs.queueing.snapshot import load_snapshot  # noqa: PLC0415
    from jobs.scheduling.plan import plan  # noqa: PLC0415
    from jobs.scheduling.snapshot import Wait  # noqa: PLC0415

    some = Job.objects.alias(part=F("pk") % 100).filter(part=number)
    some.update(extended_s=F("extended_s"))
    began = time.perf_counter()
    begin_pass()
    with look_later():
        snapshot = load_snapshot(rows=rows)
        loaded = time.perf_counter()
        decisions = plan(snapshot)
        planned = time.perf_counter()
        waits = [each for each in decisions if isinstance(each, Wait)]
        if len(waits) != len(decisions):
            raise RuntimeError("something starts, though the machine is full")
        pools = {job.job_id: job.shape.pool for job in snapshot.queued}
        changed = changed_waits(waits, rows.known, pools)
    report_waits(changed)
    return Pass(loaded - began, planned - loaded, time.perf_counter() - planned)


def _memory_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--running", type=int, default=5000)
    options = parser.parse_args(arguments)
    with figures(), servers():
        fill(options.queued, options.running)
        # A process of its own, whose memory is that of a worker that has made passes.
        spawning = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawning) as alone:
            found = alone.submit(measured).result()
        report_passes(found, options.queued)


def report_passes(found: Found, queued: int) -> None:
    """Report the figures, and on stderr where the time goes."""
    size = f"{queued // 1000}k"
    everything = f"{bare.SELECT}, {bare.SORT} and {bare.COMPARE}"
    named = [("first", found.first), *(("then", one) for one in found.passes)]
    for name, each in [*named, *((everything, one) for one in found.bare)]:
        say(
            f"  {name}: {each.seconds:.2f} s = loading {each.load_s:.2f} + planning "
            f"{each.plan_s:.2f} + reporting {each.report_s:.2f}"
        )
    for part, field, peer in (
        ("pass", "seconds", everything),
        ("load", "load_s", bare.SELECT),
        ("plan", "plan_s", bare.SORT),
        ("tell", "report_s", bare.COMPARE),
    ):
        values = [getattr(each, field) for each in found.passes]
        bare_s = median(getattr(each, field) for each in found.bare)
        spread = min(values), max(values)
        report(f"{part}_{size}_s", median(values), "s", peer=_bare(peer, bare_s), spread=spread)
    select = _bare(bare.SELECT, median(each.load_s for each in found.bare))
    report(f"load_{size}_cold_s", found.cold_load_s, "s", peer=select)
    for count, seconds in found.part_plans_s.items():
        sort = _bare(bare.SORT, found.part_sorts_s[count])
        report(f"plan_{count // 1000}k_s", seconds, "s", peer=sort)
    before = Peer("the process before its first pass", found.before_mb)
    report("pass_memory_mb", found.most_mb, "MB", peer=before)


def _bare(what: str, seconds: float) -> Peer:
    return Peer(f"{what} of as many rows", seconds)


if __name__ == "__main__":
    main()
