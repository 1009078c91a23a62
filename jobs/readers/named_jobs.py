"""Jobs that a sentence names by their number, as far as the reader may look at them."""

from __future__ import annotations

import re

from jobs.models import Job
from jobs.permissions import Actor, projects_of

# More digits than this do not fit the database's 64 bits.
NAMED_JOB = re.compile(r"\bjob (\d{1,18})\b", re.IGNORECASE)


def named_jobs(actor: Actor, *sentences: str) -> dict[int, str]:
    """Return the project of each job that the sentences name and `actor` sees, for links."""
    numbers = {int(found) for text in sentences for found in NAMED_JOB.findall(text)}
    if not numbers:
        return {}
    jobs = Job.objects.filter(pk__in=numbers, project__in=projects_of(actor))
    return dict(jobs.values_list("pk", "project__slug"))
