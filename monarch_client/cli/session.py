"""The session of one command: the configuration, a client, the project."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import click

from monarch_client import rest
from monarch_client.cli.terminal import tell
from monarch_client.rest.config import Config, load, project_of, signed_in


class Session:
    """Made once a command. `options` go to the client; tests put a transport there."""

    def __init__(self, config: Config | None = None, options: dict[str, Any] | None = None) -> None:
        self._given = config
        self.options = options or {}

    @cached_property
    def config(self) -> Config:
        """The configuration: by default that of the user, read when a command needs it."""
        return self._given or load(os.environ)

    @cached_property
    def client(self) -> rest.PortalClient:
        """A client of the portal one is signed in to. NotSignedInError when there is none."""
        return self._kept(signed_in(self.config, **self.options))

    def client_for(self, config: Config) -> rest.PortalClient:
        """Return a client with other credentials; it is closed when the command ends."""
        return self._kept(rest.PortalClient(config.url, config.token, **self.options))

    def _kept(self, client: rest.PortalClient) -> rest.PortalClient:
        """Close the client when the command ends; report on a portal that is away."""
        client.connection.on_away = _remark
        click.get_current_context().find_root().call_on_close(client.connection.close)
        return client

    def project(self, given: str | None) -> str:
        """Return the project to use: the given, the configured, or the user's only one."""
        return project_of(self.client, given or self.config.project)


def _remark(text: str) -> None:
    tell(click.style(text, dim=True))


pass_session = click.make_pass_decorator(Session)
