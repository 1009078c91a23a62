"""Query backends for hourly prices of jobs that a money quota limits, once for equal machines.

A scheduling pass queries no backend: a job under such a quota waits until its price is stored. A
known price stays in use while a newer one is requested.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Q, QuerySet

from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake, wake_later
from jobs.errors import BackendError, BackendUnavailableError, StillLookingError
from jobs.ground import clock
from jobs.models import ExpectedPrice, Job, Quota
from jobs.policies.costs import rounded
from jobs.policies.endings import retry_delay_s
from jobs.policies.job_request import JobRequest
from jobs.readers.launch_plan import NOTHING_FITS, plan_of, price_of
from jobs.scheduling.limits import USD_PER_HOUR
from monarch_client.spec import JobSpec

log = logging.getLogger(__name__)

# How long a price is current, and how long an unused one is stored.
FRESH, KEPT = timedelta(hours=1), timedelta(days=7)
# How soon pending queries are repeated, and how many may be pending.
ASK_AGAIN_S, MOST_UNDER_WAY = 1.0, 8
# The most jobs without a price key that get one in a step.
_MOST_NAMED = 1000

Key = tuple[str, str]  # backend, Job.price_key


def is_due() -> bool:
    """Whether any quota limits money."""
    return Quota.objects.filter(caps__has_key=USD_PER_HOUR).exists()


def step() -> None:
    """Request all prices that are missing or old. Safe to repeat; a crash loses nothing."""
    counted = _counted()
    if counted is None:
        return
    with exclusive(LockSpace.PRICES) as alone:
        if not alone:
            return
        _give_keys(counted)
        is_news, under_way = _ask_all(counted)
        ExpectedPrice.objects.filter(ask_again_at__lt=clock.now() - KEPT).delete()
    if is_news:
        wake("queue")
    if under_way:
        wake_later("prices", delay_s=ASK_AGAIN_S)


def _counted() -> QuerySet[Job] | None:
    """Return unfinished jobs under a money quota; None if there is no such quota."""
    quotas = list(Quota.objects.filter(caps__has_key=USD_PER_HOUR).select_related("queue"))
    if not quotas:
        return None
    projects = {quota.project_id for quota in quotas if quota.project_id is not None}
    queues = {quota.queue.name for quota in quotas if quota.queue is not None}
    return Job.objects.unfinished().filter(Q(project__in=projects) | Q(queue_name__in=queues))


def _give_keys(counted: QuerySet[Job]) -> None:
    """Set price keys of jobs that were submitted to a release without them."""
    for job in counted.filter(price_key="").only("backend_name", "spec")[:_MOST_NAMED]:
        request = JobRequest.of(JobSpec.from_dict(job.spec), job.backend_name)
        Job.objects.filter(pk=job.pk).update(price_key=request.price_key)


def _ask_all(counted: QuerySet[Job]) -> tuple[bool, int]:
    """Request prices; return whether there are new ones, and how many are pending."""
    away: dict[str, str] = {}
    is_news, under_way = False, 0
    for backend_name, price_key in list(_due(counted, clock.now())):
        if under_way >= MOST_UNDER_WAY:
            break
        key = (backend_name, price_key)
        usd, problem = None, away.get(backend_name, "")
        try:
            if not problem:
                usd, problem = _answer(counted, key)
        except StillLookingError:
            under_way += 1
            continue
        except BackendUnavailableError as error:
            # Query this backend no more: each query would wait for it again.
            away[backend_name] = problem = error.message
        is_news = _keep(key, usd, problem) or is_news
    return is_news, under_way


def _due(counted: QuerySet[Job], now: datetime) -> Iterator[Key]:
    rows = ExpectedPrice.objects.filter(ask_again_at__gt=now)
    known = set(rows.values_list("backend_name", "price_key"))
    wanted = counted.exclude(price_key="").order_by("backend_name", "price_key")
    for key in wanted.values_list("backend_name", "price_key").distinct():
        if key not in known:
            yield key


def _answer(counted: QuerySet[Job], key: Key) -> tuple[Decimal | None, str]:
    """Return the price, or why there is none. BackendUnavailableError: unknown for now."""
    backend_name, price_key = key
    job = counted.filter(backend_name=backend_name, price_key=price_key).first()
    if job is None:
        raise StillLookingError("The job has just ended.")
    try:
        plan = plan_of(backend_name, job.spec)
    except BackendUnavailableError:
        raise
    except BackendError as error:
        return None, error.message
    except Exception as error:
        # A bug of the portal, which must not keep other jobs from their prices.
        log.exception("no price", extra={"action": "price", "backend": backend_name})
        return None, f"The portal failed to request the price: {type(error).__name__}: {error}"
    usd = price_of(plan)
    return (usd, "") if usd is not None else (None, " ".join([NOTHING_FITS, *plan.reasons[:1]]))


def _keep(key: Key, usd: Decimal | None, problem: str) -> bool:
    """Store the answer, or the error if it cannot be stored, so that others are still requested."""
    try:
        return _store(key, usd, problem)
    except Exception as error:
        log.exception("price not kept", extra={"action": "price", "backend": key[0]})
        message = f"The portal failed to store the price {usd}: {type(error).__name__}."
        return _store(key, None, message)


@transaction.atomic
def _store(key: Key, usd: Decimal | None, problem: str) -> bool:
    """Store the answer; return whether it changes a scheduling pass."""
    backend_name, price_key = key
    row, _ = ExpectedPrice.objects.get_or_create(
        backend_name=backend_name, price_key=price_key, defaults={"ask_again_at": clock.now()}
    )
    before = (row.usd_per_hour, row.problem)
    row.problem = problem
    row.tries = row.tries + 1 if problem else 0
    if usd is not None:
        row.usd_per_hour = rounded(usd)
    wait = timedelta(seconds=retry_delay_s(row.tries)) if problem else FRESH
    row.ask_again_at = clock.now() + wait
    row.save()
    return (row.usd_per_hour, row.problem) != before
