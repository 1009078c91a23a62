"""The session of one command: the configuration, a client, the project."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import click

from monarch_client.cli.config import Config
from monarch_client.cli.terminal import tell
from monarch_client.errors import ClientError, NotSignedInError
from monarch_client.rest.client import PortalClient


class NoProjectError(ClientError):
    """The error that no project was named."""

    code = "no_project"


@dataclass
class Session:
    """Made once a command. `options` go to the client; tests put a transport there."""

    config: Config
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def client(self) -> PortalClient:
        """A client of the portal one is signed in to. NotSignedInError when there is none."""
        if not self.config.url or not self.config.token:
            raise NotSignedInError(
                "Not signed in. Run `mportal login`, or set MPORTAL_URL and MPORTAL_TOKEN."
            )
        return self.client_for(self.config)

    def client_for(self, config: Config) -> PortalClient:
        """Return a client with other credentials; it is closed when the command ends."""
        client = PortalClient(config.url, config.token, **self.options)
        client.connection.on_away = _remark
        click.get_current_context().find_root().call_on_close(client.connection.close)
        return client

    def project(self, given: str | None) -> str:
        """Return the project to use: the given, the configured, or the user's only one."""
        if chosen := given or self.config.project:
            return chosen
        slugs = [project.slug for project in self.client.projects()]
        if len(slugs) == 1:
            return slugs[0]
        raise NoProjectError(
            "Which project? Give --project or set MPORTAL_PROJECT; "
            + (f"yours are {', '.join(slugs)}." if slugs else "you belong to none yet.")
        )


def _remark(text: str) -> None:
    tell(click.style(text, dim=True))


pass_session = click.make_pass_decorator(Session)
