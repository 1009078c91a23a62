"""`mportal admin`: the group of all commands for administrators of the installation."""

from __future__ import annotations

import click

from monarch_client.cli import clouds, sharing


@click.group()
def admin() -> None:
    """Run commands for administrators of the installation."""


for group in (clouds.cloud, *sharing.GROUPS):
    admin.add_command(group)
