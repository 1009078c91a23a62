"""The message in place of a log that was removed for its age."""

from __future__ import annotations

from jobs.models import LogHead


def removed_logs(job_id: int, attempt: int | None = None) -> str:
    """Describe the removed logs of a job, or of one attempt by its number; "" if none was.

    The days are counted from the attempt's end.
    """
    heads = LogHead.objects.filter(attempt__job_id=job_id, removed_at__isnull=False)
    if attempt is not None:
        heads = heads.filter(attempt__number=attempt)
    rows = heads.order_by("attempt__number").select_related("attempt")
    removed = [(head.attempt, head.removed_at) for head in rows]
    if not removed:
        return ""
    last, at = removed[-1]
    days = (at - last.ended_at).days if at and last.ended_at else 0
    when = f"{at:%Y-%m-%d} after {days:,} days"
    if len(removed) > 1:
        return f"The logs of {len(removed)} attempts were removed, the last one on {when}."
    if last.number > 1 or last.job.attempts.count() > 1:
        return f"The log of attempt {last.number} was removed on {when}."
    return f"The log was removed on {when}."
