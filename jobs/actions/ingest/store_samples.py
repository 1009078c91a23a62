"""The store of hosts' samples: the latest of each, a bounded history, and the GPU use of all.

Called inside the transaction of `jobs.actions.ingest.ingest_frames`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings

from jobs.ground import clock
from jobs.live.channel import publish_use_on_commit
from jobs.logs.frames import Frame
from jobs.logs.lines import moment_of
from jobs.logs.samples import kept_of
from jobs.logs.write import locked_head
from jobs.models import Attempt, GpuUse, HostMetrics
from jobs.policies.gpu_idle import GpuHost, after_sample
from jobs.policies.gpu_use import GpuSample, with_sample
from jobs.policies.series import MOST_RECENT, folded, late_after, point_of

# A runner that sends more often, or the same again, is ignored.
LEAST_PAUSE = timedelta(seconds=1)


def store_samples(attempt: Attempt, samples: list[Frame]) -> None:
    """Store the newest of `samples` of each rank, in one statement whatever their number."""
    # Every change of an attempt and its log locks the log first; so samples are stored one by one.
    locked_head(attempt.pk)
    by_rank: dict[int, list[Frame]] = defaultdict(list)
    for sample in sorted(samples, key=lambda each: each["t"]):
        by_rank[sample["rank"]].append(sample)
    known = _known(attempt, by_rank)
    rows = [_row(attempt, known.get(rank), by_rank[rank]) for rank in sorted(by_rank)]
    fresh = [row for row in rows if row is not None]
    HostMetrics.objects.bulk_create(
        fresh,
        update_conflicts=True,
        unique_fields=["attempt", "rank"],
        update_fields=["at", "latest", "recent", "gpus_idle_since"],
    )
    _store_use(attempt, fresh)
    # Not all hosts of a job at once.
    full = [row.rank for row in fresh if len(row.recent) >= MOST_RECENT + row.rank % MOST_RECENT]
    if full:
        _fold(attempt, full)


def _known(attempt: Attempt, ranks: Iterable[int]) -> dict[int, HostMetrics]:
    rows = HostMetrics.objects.filter(attempt=attempt, rank__in=list(ranks))
    return {row.rank: row for row in rows.only("rank", "at", "recent", "gpus_idle_since")}


def _row(attempt: Attempt, known: HostMetrics | None, samples: list[Frame]) -> HostMetrics | None:
    newest = samples[-1]
    at = _moment(newest)
    if known is not None and at - known.at < LEAST_PAUSE:
        return None
    latest = kept_of(newest)
    recent = [*(known.recent if known else []), point_of(latest, at.timestamp())]
    return HostMetrics(
        attempt=attempt,
        rank=newest["rank"],
        at=at,
        latest=latest,
        recent=recent,
        gpus_idle_since=_idle_since(attempt, known, samples),
    )


def _idle_since(
    attempt: Attempt, known: HostMetrics | None, samples: list[Frame]
) -> datetime | None:
    """Return since when the host's GPUs are idle, if its job ends then; every sample counts."""
    below = attempt.job.request.gpu_below
    if below is None:
        return None
    late = late_after(settings.MPORTAL_METRICS_SECONDS)
    host = GpuHost(known.at, known.gpus_idle_since) if known else None
    for sample in samples:
        at = _moment(sample)
        if host is None or at > host.reported_at:
            uses = [gpu["utilization"] for gpu in kept_of(sample)["gpus"]]
            host = after_sample(host, at, uses, below, late)
    return host.idle_since if host else None


def _store_use(attempt: Attempt, rows: Iterable[HostMetrics]) -> None:
    """Add the new samples of hosts with GPUs to the use of the attempt's GPUs."""
    samples = [
        GpuSample(row.at, [gpu["utilization"] for gpu in row.latest["gpus"]])
        for row in rows
        if row.latest["gpus"]
    ]
    if not samples:
        return
    late = late_after(settings.MPORTAL_METRICS_SECONDS)
    known = GpuUse.objects.filter(attempt=attempt).first()
    use = known.use if known else None
    for sample in samples:
        use = with_sample(use, sample, late)
    assert use is not None  # noqa: S101 - there is a sample
    GpuUse(
        attempt=attempt,
        job_id=attempt.job_id,
        at=use.at,
        busy_at=use.busy_at,
        points=use.points,
        step_s=use.step_s,
    ).save(force_insert=known is None, force_update=known is not None)
    # Pages show a new point, not each report.
    if known is None or known.use.begins_at != use.begins_at:
        publish_use_on_commit(attempt.job)


def _moment(sample: Frame) -> datetime:
    # A clock that is ahead must not make all that follows look old.
    return min(moment_of(int(sample["t"] * 1000)), clock.now())


def _fold(attempt: Attempt, ranks: list[int]) -> None:
    rows = list(HostMetrics.objects.filter(attempt=attempt, rank__in=ranks).defer("latest"))
    for row in rows:
        row.history, row.step_s = folded(row.history, row.recent, row.step_s)
        row.recent = []
    HostMetrics.objects.bulk_update(rows, ["history", "step_s", "recent"], batch_size=100)
