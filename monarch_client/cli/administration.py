"""`mportal admin`: the group of all commands for administrators of the installation."""

from __future__ import annotations

import click

from monarch_client.cli import clouds, sharing, users


@click.group()
def admin() -> None:
    """Run commands for administrators of the installation."""


for group in (users.user, clouds.cloud, *sharing.GROUPS):
    admin.add_command(group)
