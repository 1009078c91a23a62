"""Giving the portal's SkyPilot the credentials of a cloud, and taking them away."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from jobs.audit.record import record
from jobs.audit.targets import Target
from jobs.backends import clouds
from jobs.errors import InvalidCloudError, NotFoundError
from jobs.permissions import Actor, require_clouds

MOST_CHARS = 256 * 1024  # of one field


def add_cloud(
    actor: Actor | None, kind: str, content: Mapping[str, str], *, allow_exec: bool = False
) -> list[str]:
    """Store credentials of `kind` and give the names they are listed under.

    No `actor`: a user on the portal's own host, who alone may `allow_exec`. InvalidCloudError:
    they were refused, and what was there before still is.
    """
    require_clouds(actor, to_change=True)
    if kind not in clouds.KINDS:
        raise NotFoundError(f"There is no kind {kind[:40]!r} of cloud: {', '.join(clouds.KINDS)}.")
    fields = clouds.KINDS[kind].fields
    unknown = sorted(set(content) - set(fields))
    if unknown:
        raise InvalidCloudError(f"{kind} takes {', '.join(fields)}, and no {unknown[0][:40]!r}.")
    if any(len(value) > MOST_CHARS or "\0" in value for value in content.values()):
        raise InvalidCloudError(f"A field has more than {MOST_CHARS:,} characters, or a NUL.")
    # Begun first: without a database there would be no entry for the files.
    with transaction.atomic():
        names = clouds.add(
            clouds.own_home(), kind, content, allow_exec=allow_exec and actor is None
        )
        target = Target("cloud", f"{kind} {', '.join(names)}")
        record(actor, "add_cloud", target, after={"names": names})
    return names


def remove_cloud(actor: Actor | None, kind: str, name: str) -> None:
    """Forget the credentials of that name. NotFoundError when there are none."""
    require_clouds(actor, to_change=True)
    with transaction.atomic():
        if kind not in clouds.KINDS or not clouds.remove(clouds.own_home(), kind, name):
            raise NotFoundError(f"There are no credentials {kind} {name[:100]!r} here.")
        record(actor, "remove_cloud", Target("cloud", f"{kind} {name}"), before={"names": [name]})
