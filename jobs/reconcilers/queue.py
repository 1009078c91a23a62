"""Run scheduling passes: decide, start queued jobs, preempt victims, refuse jobs.

`jobs.background.pace` decides how soon a pass may follow another.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from threading import Lock
from typing import NamedTuple

from django.db import transaction

from jobs.actions.attempts.preempt import evict, preempt
from jobs.actions.attempts.start_attempt import start_attempt, start_attempts
from jobs.actions.jobs.report_waits import Changed, changed_waits, report_waits
from jobs.background import pace
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import begin_queue_pass, wake, wake_later
from jobs.errors import StaleJobError
from jobs.ground import clock
from jobs.ground.garbage import look_later
from jobs.lifecycle import move
from jobs.models import Job
from jobs.models.startable_jobs import startable_jobs
from jobs.queueing.pass_number import begin_pass, require_newest
from jobs.queueing.queued_rows import QueuedRows
from jobs.queueing.snapshot import load_snapshot
from jobs.scheduling.causes import NoPrice
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import Evict, Preempt, Refuse, Start, StaysQueued, Wait
from jobs.statuses import JobStatus, StopReason
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)

# How soon a pass is tried again while another worker makes one.
LOOK_AGAIN_S = 0.2

Decision = Start | Refuse | Preempt | Evict

# So many jobs start in one transaction: their rows are locked for some tens of milliseconds.
TOGETHER = 50

# The rows that this process read in its last pass, and a lock: a pass that hung until it lost its
# database lock may continue beside the next one.
_ROWS, _ROWS_IN_USE = QueuedRows(), Lock()


def is_due() -> bool:
    """Whether any job is queued."""
    return Job.objects.in_status(JobStatus.QUEUED).exists()


def step() -> None:
    """Run a scheduling pass, or schedule one for later if the last one was too recent."""
    # Hints come with each job that is submitted or ends: most of them during a rest.
    if (wait_s := pace.resting_s()) > 0:
        wake_later("queue", delay_s=wait_s, why="rest")
        return
    with exclusive(LockSpace.QUEUE) as alone:
        if not alone:
            wake_later("queue", delay_s=LOOK_AGAIN_S, why="pass")
            return
        if (wait_s := pace.resting_s()) > 0:
            wake_later("queue", delay_s=wait_s, why="rest")
            return
        begin_queue_pass()
        if not startable_jobs(clock.now()).exists():
            # The rows of a queue that is empty now only take memory.
            with _rows() as rows:
                rows.forget()
            return
        # Processor time: waiting on a busy machine is no cost of a pass, and would only lengthen
        # the pause after it.
        begin = time.thread_time()
        run_pass()
        pace.rest_after(time.thread_time() - begin)


class _Planned(NamedTuple):
    """The actions that follow a plan, without the plan, which may be large."""

    acts: list[Decision]
    changed: Changed
    wants_prices: bool


def run_pass() -> None:
    """Load, decide, act. The job's status and the number of the pass guard each action."""
    # The number first: the snapshot lacks what an older pass starts after it.
    number = begin_pass()
    with look_later():
        planned = _planned()
    reach("plan.decided")
    for decision in _not_started(planned.acts, number):
        _carry_out(decision, number)
    if planned.wants_prices:
        wake("prices")
    report_waits(planned.changed)


def _planned() -> _Planned:
    with _rows() as rows:
        snapshot = load_snapshot(rows=rows)
        decisions = plan(snapshot)
        waits = [each for each in decisions if isinstance(each, StaysQueued)]
        pools = {job.job_id: job.shape.pool for job in snapshot.queued}
        return _Planned(
            acts=[each for each in decisions if not isinstance(each, Wait)],
            changed=changed_waits(waits, rows.known, pools),
            wants_prices=any(isinstance(each.cause, NoPrice) for each in waits),
        )


@contextmanager
def _rows() -> Iterator[QueuedRows]:
    """Give the rows of this process to one thread, and empty rows to a second one."""
    is_mine = _ROWS_IN_USE.acquire(blocking=False)
    rows = _ROWS if is_mine else QueuedRows()
    try:
        yield rows
    except Exception:
        # After any error the next pass reads all rows: it may have another database.
        rows.forget()
        raise
    finally:
        if is_mine:
            _ROWS_IN_USE.release()


def _not_started(acts: list[Decision], number: int) -> Iterator[Decision]:
    """Yield the actions to carry out singly, in order; start together the jobs that can be.

    The order is kept: a start may use machines that earlier actions released.
    """
    for is_plain, group in groupby(acts, key=_is_plain):
        acts_alike = list(group)
        for at in range(0, len(acts_alike), TOGETHER):
            some = acts_alike[at : at + TOGETHER]
            started: set[int] = set()
            if is_plain and len(some) > 1:
                started = _start_together([act.job_id for act in some], number)
            yield from (act for act in some if act.job_id not in started)


def _is_plain(act: Decision) -> bool:
    return isinstance(act, Start) and not act.onto


def _start_together(job_ids: list[int], number: int) -> set[int]:
    """Start jobs together; return those that started. After an error each is tried singly."""
    started: set[int] = set()
    with _harmless_to_others(jobs=job_ids):
        started.update(start_attempts(job_ids, planned_by=number))
    return started


@contextmanager
def _harmless_to_others(**who: object) -> Iterator[None]:
    """Log the failure of one job, so that the jobs after it are still handled."""
    try:
        yield
    except StaleJobError:
        log.info("job moved meanwhile", extra={"action": "plan_stale", **who})
    except Exception:
        log.exception("not carried out", extra={"action": "plan_failed", **who})


def _carry_out(decision: Decision, number: int) -> None:
    queued = Job.objects.in_status(JobStatus.QUEUED).select_related("project")
    job = queued.filter(pk=decision.job_id, held=False).first()
    if job is None:
        return
    with _harmless_to_others(job=job.pk):
        if isinstance(decision, Start):
            start_attempt(job, planned_by=number, onto=decision.onto)
        elif isinstance(decision, Preempt):
            preempt(job, decision.victims, planned_by=number)
        elif isinstance(decision, Evict):
            evict(job, decision.clusters, planned_by=number)
        else:
            _refuse(job, decision.message, number)


@transaction.atomic
def _refuse(job: Job, message: str, number: int) -> None:
    """Fail the job, unless a newer pass has begun: there may be more machines now."""
    require_newest(number)
    move(job, JobStatus.FAILED, reason=StopReason.NO_CAPACITY, message=message)
