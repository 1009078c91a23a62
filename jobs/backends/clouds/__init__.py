"""Credentials of clouds in the HOME of SkyPilot's server: checked, merged, listed without values.

Nothing here speaks to a cloud. Content that would run a program on the portal's host is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings

from jobs.backends.clouds import aws, azure, gcp, kubernetes, lambda_cloud, slurm
from jobs.backends.clouds.files import PrivateHome
from jobs.errors import ConflictError


class CloudEntry(NamedTuple):
    """One set of stored credentials. `about` identifies the account, and never holds the secret."""

    kind: str
    name: str
    about: str


@dataclass(frozen=True, slots=True)
class CloudKind:
    """The functions that add, remove and list one kind of cloud.

    `add` takes the fields of `fields` and gives the names it stored; InvalidCloudError leaves
    everything as it was. `remove` returns whether there was one of that name.
    """

    fields: tuple[str, ...]
    add: Callable[[PrivateHome, Mapping[str, str], bool], list[str]]
    remove: Callable[[PrivateHome, str], bool]
    listed: Callable[[PrivateHome], list[tuple[str, str]]]


KINDS: dict[str, CloudKind] = {
    "aws": CloudKind(aws.FIELDS, aws.add, aws.remove, aws.listed),
    "azure": CloudKind(azure.FIELDS, azure.add, azure.remove, azure.listed),
    "gcp": CloudKind(gcp.FIELDS, gcp.add, gcp.remove, gcp.listed),
    "kubernetes": CloudKind(
        kubernetes.FIELDS, kubernetes.add, kubernetes.remove, kubernetes.listed
    ),
    "lambda": CloudKind(
        lambda_cloud.FIELDS, lambda_cloud.add, lambda_cloud.remove, lambda_cloud.listed
    ),
    "slurm": CloudKind(slurm.FIELDS, slurm.add, slurm.remove, slurm.listed),
}


def own_home() -> PrivateHome:
    """Return the folder of this portal's credentials. ConflictError: SkyPilot runs elsewhere."""
    if settings.MPORTAL_SKYPILOT_ENDPOINT:
        raise ConflictError(
            "This portal uses the SkyPilot server at MPORTAL_SKYPILOT_ENDPOINT: clouds are added "
            "there, by the administrator of that server."
        )
    return PrivateHome(settings.MPORTAL_HOME / "skypilot" / "home")


def add(home: PrivateHome, kind: str, content: Mapping[str, Any], *, allow_exec: bool) -> list[str]:
    """Store credentials; the names under which they are listed."""
    with home.alone():
        return KINDS[kind].add(home, content, allow_exec)


def remove(home: PrivateHome, kind: str, name: str) -> bool:
    """Forget them; whether there were any of that name."""
    with home.alone():
        return KINDS[kind].remove(home, name)


def listed(home: PrivateHome) -> list[CloudEntry]:
    """List all stored credentials, by kind and name."""
    return [
        CloudEntry(kind, name, about)
        for kind, each in KINDS.items()
        for name, about in sorted(each.listed(home))
    ]


__all__ = ["KINDS", "CloudEntry", "CloudKind", "PrivateHome", "add", "listed", "own_home", "remove"]
