"""`mportal admin`: the group of all commands for administrators of the installation."""

from __future__ import annotations

from typing import ClassVar

import click

from monarch_client.cli.lazy_group import LazyGroup


class AdminGroup(LazyGroup):
    """The commands for administrators."""

    sections: ClassVar = {
        "Commands": {
            "user": ("users:user", "Manage users of the installation."),
            "cloud": ("clouds:cloud", "Manage credentials of clouds."),
            "pool": ("sharing:pool", "Manage pools: machines of a backend that queues share."),
            "queue": ("sharing:queue", "Manage queues, which jobs name with portal.queue."),
            "quota": ("sharing:quota", "Manage quotas: limits on running jobs."),
            "project": ("sharing:project", "Manage projects."),
        },
    }


@click.group(cls=AdminGroup)
def admin() -> None:
    """Run commands for administrators of the installation."""
