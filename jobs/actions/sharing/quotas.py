"""Setting and deleting quotas, and the weights of projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from jobs.actions.sharing.queue_input import Reading, plan_queue_again, shown
from jobs.audit.record import record
from jobs.errors import ConflictError, NotFoundError
from jobs.models import Pool, Project, Queue, Quota, User
from jobs.permissions import Actor, project_for, require_sharing


@dataclass(frozen=True, slots=True)
class Whose:
    """The scope of a quota, by names: a queue, a project, or one person or each in a project.

    With `pool` it counts what runs there, else what runs anywhere.
    """

    queue: str = ""
    project: str = ""
    user: str = ""
    per_person: bool = False
    pool: str = ""


@transaction.atomic
def set_quota(
    actor: Actor,
    whose: Whose,
    caps: Mapping[str, Any],
    nominal: Mapping[str, Any] | None = None,
    *,
    must_be_new: bool = False,
) -> Quota:
    """Set how much may run at once; all of `caps` anew. What runs already goes on.

    `nominal` is a project's own part of that, all of it anew; None leaves it as it is.
    InvalidSettingsError names everything that is wrong. ConflictError: it `must_be_new`, and this
    scope has a quota.
    """
    require_sharing(actor)
    reading = Reading()
    found = _rows_of(reading, whose)
    checked = reading.caps(caps)
    if not caps:
        reading.wrong("caps", "Names nothing. Say how much, as jobs=4; or delete the quota.")
    which = {**found, "per_person": whose.per_person}
    own = _own_part(reading, whose, which, nominal)
    _require_within(reading, own, checked)
    reading.require_none()
    amounts = {"caps": checked, "nominal": own}
    # Holds the lock of the row that is there; two requests that create one take turns.
    quota, is_new = Quota.objects.select_for_update(no_key=True).get_or_create(
        **which, defaults=amounts
    )
    if must_be_new and not is_new:
        raise ConflictError("This scope has a quota already.")
    before = None if is_new else _terms(quota)
    if not is_new:
        quota.caps, quota.nominal = checked, own
        quota.save(update_fields=["caps", "nominal"])
    record(actor, "set_quota", quota, before=before, after=_terms(quota))
    plan_queue_again()
    return quota


@transaction.atomic
def delete_quota(actor: Actor, quota_id: int) -> None:
    """Take a quota away. NotFoundError when there is none of that number."""
    require_sharing(actor)
    quota = Quota.objects.filter(pk=quota_id).first()
    if quota is None:
        raise NotFoundError(f"There is no quota {quota_id}.")
    record(actor, "delete_quota", quota, before=_terms(quota))
    quota.delete()
    plan_queue_again()


@transaction.atomic
def set_weight(actor: Actor, slug: str, weight: Any) -> Project:
    """Say how much of a pool a project may have beside others, as a proportion."""
    require_sharing(actor)
    project = project_for(actor, slug)
    reading = Reading()
    before = {"weight": project.share_weight}
    project.share_weight = reading.weight(weight)
    reading.require_none()
    project.save(update_fields=["share_weight"])
    after = {"weight": project.share_weight}
    record(actor, "set_weight", project, before=before, after=after)
    plan_queue_again()
    return project


def _terms(quota: Quota) -> dict[str, Any]:
    pool = quota.pool.name if quota.pool else None
    return {
        "pool": pool,
        "per_person": quota.per_person,
        "caps": quota.caps,
        "nominal": quota.nominal,
    }


def _own_part(
    reading: Reading, whose: Whose, which: Mapping[str, Any], nominal: Mapping[str, Any] | None
) -> dict[str, float]:
    if nominal is not None:
        if nominal and (whose.queue or whose.user or whose.per_person):
            reading.wrong("nominal", "Only a project has a part of its own: leave it out.")
        return reading.caps(nominal, path="nominal")
    if reading.errors:
        return {}  # of whom it would be is not known
    quota = Quota.objects.select_for_update(no_key=True).filter(**which).first()
    return quota.nominal if quota else {}


def _require_within(reading: Reading, own: Mapping[str, float], caps: Mapping[str, float]) -> None:
    for what, amount in own.items():
        if what not in caps:
            reading.wrong(
                f"nominal.{shown(what)}", f"Say up to how much with it: caps name no {shown(what)}."
            )
        elif amount > caps[what]:
            reading.wrong(
                f"nominal.{shown(what)}",
                f"Its own part is {amount:,}, more than the {caps[what]:,} that may run at once.",
            )


def _rows_of(reading: Reading, whose: Whose) -> dict[str, Any]:
    if bool(whose.queue) == bool(whose.project):
        reading.wrong("project", "Name a project or a queue, and not both.")
    of_people = bool(whose.user) or whose.per_person
    if of_people and not whose.project:
        reading.wrong("user" if whose.user else "per_person", "A person's quota is in a project.")
    if whose.user and whose.per_person:
        reading.wrong("user", "Name one person, or say each (per_person), and not both.")
    if whose.queue and whose.pool:
        reading.wrong("pool", "A queue has one pool already: leave it out.")
    return {
        "queue": _named(reading, "queue", whose.queue, Queue),
        "project": _named(reading, "project", whose.project, Project, by="slug"),
        "pool": _named(reading, "pool", whose.pool, Pool),
        "user": _person(reading, whose.user),
    }


def _named(
    reading: Reading, kind: str, name: str, model: type[Queue | Project | Pool], *, by: str = "name"
) -> Queue | Project | Pool | None:
    """Return the row of that name, or None with the error noted."""
    if not name:
        return None
    row = model._default_manager.filter(**{by: name}).first()
    if row is None:
        reading.one_of(kind, name, model._default_manager.values_list(by, flat=True), kind)
    return row


def _person(reading: Reading, username: str) -> User | None:
    if not username:
        return None
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        reading.wrong("user", f"There is no active user {shown(username)}.")
    return user
