"""The GPU use of jobs, as lists and charts show it."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from jobs.ground import clock
from jobs.models import Attempt, GpuUse, Job
from jobs.policies.gpu_use import IDLE_AFTER, columns_of
from jobs.policies.series import late_after
from jobs.statuses import ACTIVE_STATUSES
from monarch_client.wire import metrics as wire

# Points of a sparkline.
MOST_RECENT = 30
# Lists point idle GPUs out after this time.
LISTED_AFTER = IDLE_AFTER


def gpu_use_of(job: Job) -> wire.GpuUse | None:
    """Return the use of a job's last attempt with GPUs; the job was read by `with_attempts`."""
    uses: Sequence[GpuUse] = getattr(job, "newest_gpu_uses", ())
    return gpu_use_view(uses[0], is_on=job.status in ACTIVE_STATUSES) if uses else None


def gpu_use_view(row: GpuUse, *, is_on: bool) -> wire.GpuUse:
    """Return one attempt's use; one that is over has neither a use now nor idle GPUs."""
    use = row.use
    late = late_after(settings.MPORTAL_METRICS_SECONDS)
    return wire.GpuUse(
        at=use.at,
        now=use.now if is_on else None,
        mean=use.mean,
        lowest=use.lowest,
        idle_since=use.idle_since(clock.now(), late) if is_on else None,
        recent=use.means[-MOST_RECENT:],
    )


def gpu_use_series(attempt: Attempt) -> wire.GpuUseSeries | None:
    """Return the use of all hosts of an attempt over time; None if none reports a GPU."""
    row = GpuUse.objects.filter(attempt=attempt).first()
    return wire.GpuUseSeries(**columns_of(row.points)) if row and row.points else None
