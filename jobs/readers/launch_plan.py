"""The launch plan of a job: where it could run, for how much, and when it would start."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from jobs.admission.checked_spec import Checked
from jobs.backends import registry
from jobs.backends.base import Candidate, Plan, is_keeping
from jobs.errors import BackendError, StillLookingError
from jobs.limits import duration_limit
from jobs.models import Project
from jobs.permissions import Actor
from jobs.policies.costs import NOTHING, for_time, shown
from jobs.policies.limits import shown_s, walltime_s
from jobs.readers.default_values import default_values
from jobs.readers.start_forecast import StartForecasts
from monarch_client.spec.summary import number_of_jobs, summary_of
from monarch_client.wire import clusters as wire

log = logging.getLogger(__name__)

NOTHING_FITS = "Nothing that could run this job was found."


def plan_jobs(actor: Actor, project: Project, together: Sequence[Checked]) -> wire.Plans:
    """Return the launch plans of specifications that are submitted together, as `plan_job` does."""
    forecasts = StartForecasts(actor, project, together)
    plans = [_plan(project, each, forecasts) for each in together]
    prices = [each.total_usd for each in plans if each.total_usd is not None]
    return wire.Plans(
        results=plans,
        num_jobs=sum(each.num_jobs for each in plans),
        total_usd=sum(prices, NOTHING) if len(prices) == len(plans) else None,
    )


def plan_job(actor: Actor, project: Project, checked: Checked) -> wire.Plan:
    """Return the launch plan of a checked specification; stores and starts nothing.

    A problem of the backend is reported in the plan itself.
    """
    return _plan(project, checked, StartForecasts(actor, project, [checked]))


def _plan(project: Project, checked: Checked, forecasts: StartForecasts) -> wire.Plan:
    plan, problem, is_pending = _ask(checked)
    ordered = sorted(plan.candidates, key=lambda each: (not each.is_chosen, each.usd_per_hour))
    candidates = [wire.Candidate(**asdict(each)) for each in ordered]
    limit_s = walltime_s(checked.request.duration_s, 0, duration_limit(project))
    price = price_of(plan)
    usd = None if price is None or limit_s is None else for_time(price, limit_s)
    num_jobs = number_of_jobs([checked.spec])
    return wire.Plan(
        name=checked.spec.name,
        backend=checked.backend_name,
        candidates=candidates,
        chosen=next((each for each in candidates if each.is_chosen), None),
        reasons=list(plan.reasons),
        problem=problem,
        is_pending=is_pending,
        max_duration_s=limit_s,
        usd_per_hour=price,
        usd=usd,
        summary=summary_of([checked.spec]),
        num_jobs=num_jobs,
        total_usd=None if usd is None else usd * num_jobs,
        defaults=default_values(project, checked),
        queue=checked.request.queue_name,
        start=forecasts.of(checked),
        warnings=list(_beyond_budget(checked.request.budget_usd, usd, limit_s)),
    )


def _beyond_budget(
    budget_usd: float | None, usd: Decimal | None, limit_s: int | None
) -> Iterator[str]:
    if budget_usd is None or usd is None or limit_s is None:
        return
    budget = Decimal(str(budget_usd))
    if usd > budget:
        yield (
            f"It costs {shown(usd)} if it runs for {shown_s(limit_s)}, and its budget_usd is "
            f"{shown(budget)}: it is stopped when that is spent."
        )


def plan_of(backend_name: str, spec: dict[str, Any]) -> Plan:
    """Return the backend's offer for a checked specification. BackendError: why there is none.

    StillLookingError: it is at it, ask again.
    """
    backend = registry.get(backend_name)
    if not is_keeping(backend):
        return Plan((_on_own_machines(backend_name),))
    return backend.plan(spec)


def price_of(plan: Plan) -> Decimal | None:
    """Return the hourly price of the candidate that would be taken; None where there is none."""
    return next((each.usd_per_hour for each in plan.candidates if each.is_chosen), None)


def _ask(checked: Checked) -> tuple[Plan, str, bool]:
    """Return the plan, why there is none, and whether it is still being made."""
    try:
        plan = plan_of(checked.backend_name, checked.content)
    except StillLookingError as error:
        return Plan(), error.message, True
    except BackendError as error:
        return Plan(), error.message, False
    except Exception as error:
        log.exception("no plan", extra={"action": "plan", "backend": checked.backend_name})
        return Plan(), f"The portal failed to plan it: {type(error).__name__}: {error}", False
    return plan, "" if plan.candidates else NOTHING_FITS, False


def _on_own_machines(backend_name: str) -> Candidate:
    """Return the offer of a backend whose machines cost nothing more when they are used."""
    return Candidate(
        infra=backend_name,
        instance_type="",
        cpus="",
        memory="",
        accelerators="",
        use_spot=False,
        usd_per_hour=NOTHING,
        is_chosen=True,
    )
