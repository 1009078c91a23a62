"""Setting and deleting a project's secrets, and sealing all of them anew."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.actions.projects.keep_project import lock_project
from jobs.audit.record import record
from jobs.audit.targets import Target
from jobs.errors import ConflictError, InvalidSecretError, NotFoundError
from jobs.ground import clock
from jobs.ground.seals import resealed, sealed
from jobs.logs.needles import is_masked
from jobs.models import HandedSecrets, Project, ProjectSecret
from jobs.permissions import Actor, Verb, require
from monarch_client.spec.secret_keys import name_complaint

MOST_SECRETS = 200  # of one project
MOST_BYTES = 32 * 1024


def about_secret(secret: ProjectSecret) -> str:
    """Return the context to which the seal of a project's secret is bound."""
    return f"project {secret.project_id} {secret.name}"


@transaction.atomic
def set_secret(actor: Actor, project: Project, name: str, value: str) -> ProjectSecret:
    """Make the secret, or give it another value. Jobs that have started keep what they were given.

    InvalidSecretError: its name or value can't be one. ConflictError: the project has too many.
    SecretsUnavailableError: the portal has no key to seal it with.
    """
    require(actor, Verb.MANAGE_SECRETS, project)
    _check(name, value)
    # Two at once would both find room.
    lock_project(project, Verb.MANAGE_SECRETS)
    secret = ProjectSecret.objects.filter(project=project, name=name).first()
    before = _terms(secret) if secret else None
    if secret is None:
        if ProjectSecret.objects.filter(project=project).count() >= MOST_SECRETS:
            raise ConflictError(f"A project has at most {MOST_SECRETS} secrets; delete one first.")
        secret = ProjectSecret(project=project, name=name, created_by=actor.user)
    secret.ciphertext = sealed(value, about=about_secret(secret))
    secret.is_masked = is_masked(value)
    secret.updated_by = actor.user
    secret.updated_at = clock.now()
    secret.save()
    record(actor, "set_secret", secret, before=before, after=_terms(secret))
    return secret


@transaction.atomic
def delete_secret(actor: Actor, project: Project, name: str) -> None:
    """Remove it. Jobs that name it fail at their start. NotFoundError when there is none."""
    require(actor, Verb.MANAGE_SECRETS, project)
    secret = ProjectSecret.objects.filter(project=project, name=name).first()
    if secret is None:
        raise NotFoundError(f"Project {project.slug} has no secret of that name.")
    record(actor, "delete_secret", secret, before=_terms(secret))
    secret.delete()


def reseal_secrets() -> int:
    """Seal everything with the newest key, and say how many there are. Safe to repeat.

    SecretsUnavailableError: one of them opens with no key; those before it are done.
    """
    count = 0
    for secret in ProjectSecret.objects.order_by("pk").iterator():
        same = ProjectSecret.objects.filter(pk=secret.pk, ciphertext=secret.ciphertext)
        count += same.update(ciphertext=resealed(secret.ciphertext))
    for handed in HandedSecrets.objects.order_by("pk").iterator():
        same_row = HandedSecrets.objects.filter(pk=handed.pk, sealed=handed.sealed)
        count += same_row.update(sealed=resealed(handed.sealed))
    record(None, "reseal_secrets", Target("secret", "all secrets"), after={"count": count})
    return count


def _terms(secret: ProjectSecret) -> dict[str, Any]:
    return {"masked": secret.is_masked, "updated_at": secret.updated_at.isoformat()}


def _check(name: str, value: str) -> None:
    if complaint := name_complaint(name):
        raise InvalidSecretError(f"This can't be the name of a secret: {complaint}.", field="name")
    if complaint := _value_complaint(value):
        raise InvalidSecretError(complaint, field="value")


def _value_complaint(value: str) -> str:
    if not value:
        return "A secret has a value of at least one character."
    if "\0" in value:
        return "The value holds a NUL, which no environment variable can."
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "The value holds half of a character."
    return f"The value is longer than {MOST_BYTES:,} bytes." if size > MOST_BYTES else ""
