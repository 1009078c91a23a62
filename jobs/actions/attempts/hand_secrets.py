"""Taking out of a project what an attempt is given of its secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping

from jobs.actions.projects.secrets import about_secret
from jobs.errors import BackendError, SecretMissingError, SecretsUnavailableError
from jobs.ground.seals import sealed, unsealed
from jobs.logs.handed import about_attempt, values_handed
from jobs.models import Attempt, HandedSecrets, Job, ProjectSecret

# The masks take 260 bytes of memory for each of these, and a second of a core for 400 KiB.
MOST_BYTES_OF_JOB = 64 * 1024


def hand_secrets(job: Job, attempt: Attempt) -> dict[str, str]:
    """Return environment variables for the backend alone; a second call returns the same values.

    What is given is stored first, sealed: by it the attempt's log is masked from its first line
    on. SecretMissingError: the project has not got one any more. BackendError: no key opens
    them, or they are too long together.
    """
    wanted = job.request.secrets
    if not wanted:
        return {}
    try:
        row = HandedSecrets.objects.filter(pk=attempt.pk).first() or _store(job, attempt, wanted)
        return values_handed(row)
    except SecretsUnavailableError as error:
        hint = "An administrator of this portal must fix it; then run the job again."
        raise BackendError(error.message, hint=hint) from error


def _store(job: Job, attempt: Attempt, wanted: Mapping[str, str]) -> HandedSecrets:
    rows = ProjectSecret.objects.filter(project=job.project, name__in=wanted.values())
    by_name = {row.name: row for row in rows}
    missing = sorted(set(wanted.values()) - set(by_name))
    if missing:
        raise SecretMissingError(
            f"Project {job.project.slug} has no secret {', '.join(missing)} any more.",
            hint=f"Set it with `mportal secret set {missing[0]}`, and run the job again.",
        )
    values = {
        variable: unsealed(by_name[name].ciphertext, about=about_secret(by_name[name]))
        for variable, name in wanted.items()
    }
    size = sum(len(value.encode()) for value in values.values())
    if size > MOST_BYTES_OF_JOB:
        raise BackendError(
            f"This job's secrets have {size:,} bytes together, more than {MOST_BYTES_OF_JOB:,}.",
            hint="Name fewer secrets, or shorter ones. A file belongs in the work directory.",
        )
    content = sealed(json.dumps(values), about=about_attempt(attempt.pk))
    return HandedSecrets.objects.get_or_create(attempt=attempt, defaults={"sealed": content})[0]
