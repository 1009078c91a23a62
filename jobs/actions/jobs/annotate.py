"""Labels and the note of a job, which users may change in any status."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from jobs.actions.jobs.history import note_action
from jobs.actions.jobs.present import keep, read_again
from jobs.audit.record import record
from jobs.errors import InvalidLabelsError
from jobs.models import Job
from jobs.permissions import Actor, Verb, require
from monarch_client.spec.label_keys import MOST_LABELS, label_complaint

NOTE_LIMIT = 2000
# Enough to replace all labels of a job.
_MOST_CHANGES = 2 * MOST_LABELS


def label_job(actor: Actor, job: Job, changes: Mapping[str, str | None]) -> Job:
    """Change labels of `job`; None as a value removes a label, others stay.

    InvalidLabelsError: a name or value breaks the rules, or there would be too many. A rerun has
    the labels of the specification.
    """
    require(actor, Verb.LABEL_JOB, job.project)
    if len(changes) > _MOST_CHANGES:
        raise InvalidLabelsError(f"Change at most {_MOST_CHANGES} labels at once.")
    for name, value in changes.items():
        if complaint := label_complaint(name, value or ""):
            raise InvalidLabelsError(complaint)
    with transaction.atomic():
        keep(job)
        read_again(job)
        before = dict(job.labels)
        merged = {**before, **changes}
        job.labels = {name: value for name, value in merged.items() if value is not None}
        if len(job.labels) > MOST_LABELS:
            raise InvalidLabelsError(f"A job has at most {MOST_LABELS} labels.")
        if job.labels != before:
            job.save(update_fields=["labels"])
            record(actor, "label", job, before={"labels": before}, after={"labels": job.labels})
            made = {name: each for name, each in changes.items() if each != before.get(name)}
            note_action(job, actor, "label", f"Labels changed: {_text_of(made)}.")
    return job


def set_note(actor: Actor, job: Job, note: str) -> Job:
    """Set the note of `job`; an empty one removes it."""
    require(actor, Verb.LABEL_JOB, job.project)
    with transaction.atomic():
        keep(job)
        read_again(job)
        before, job.note = job.note, note.strip()[:NOTE_LIMIT]
        if job.note != before:
            job.save(update_fields=["note"])
            record(actor, "note", job, before={"note": before}, after={"note": job.note})
            note_action(job, actor, "note", "Note changed." if job.note else "Note removed.")
    return job


def _text_of(changes: Mapping[str, str | None]) -> str:
    words = (f"{name}-" if value is None else f"{name}={value}" for name, value in changes.items())
    return ", ".join(words)
