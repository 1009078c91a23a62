"""Commands about oneself: login, whoami, token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch_client.cli.output import Output, age, local_day, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say, tell
from monarch_client.cli.verb_group import VerbGroup
from monarch_client.rest.config import Config, save

if TYPE_CHECKING:
    from monarch_client.wire.account import Me, NewToken

TOKEN_COLUMNS = {
    "ID": lambda token: str(token.id),
    "NAME": lambda token: token.name,
    "PROJECT": lambda token: token.project or "(all)",
    "RIGHTS": lambda token: "read" if token.read_only else "read, write",
    "LAST USED": lambda token: f"{age(token.last_used_at)} ago" if token.last_used_at else "never",
    "EXPIRES": lambda token: local_day(token.expires_at) if token.expires_at else "never",
}


@click.command()
@click.option("--url", prompt="Address of the portal", help="Address of the portal.")
@click.option("--token", default="", help="An API token; prompted for by default.")
@click.option("--project", "-p", default="", help="The project to use by default.")
@pass_session
def login(session: Session, url: str, token: str, project: str) -> None:
    """Store a portal's address and a token for later commands."""
    url = url.strip().rstrip("/")
    if "://" not in url:
        url = f"http://{url}" if url.startswith(("localhost", "127.")) else f"https://{url}"
    if not token:
        tell(f"Make a token at {url}/settings/tokens")
        token = click.prompt("Token", hide_input=True, err=True)
    config = Config(url=url, token=token.strip(), project=project)
    me = session.client_for(config).me()
    path = save(config)
    tell(f"Signed in as {me.username}; kept in {path}")


@click.command()
@output_options
@pass_session
def whoami(session: Session, output: Output) -> None:
    """Show your user name and roles."""
    me = session.client.me()
    output.one(me, lambda: _show_me(session.config.url, me), key="username")


@click.group(cls=VerbGroup)
def token() -> None:
    """Manage your API tokens."""


@token.command("ls")
@output_options
@pass_session
def token_ls(session: Session, output: Output) -> None:
    """List your valid tokens."""
    output.rows(
        session.client.tokens(),
        TOKEN_COLUMNS,
        least=("LAST USED", "RIGHTS"),
        empty="No tokens. To create one: mportal token create NAME",
    )


@token.command("create")
@click.argument("name")
@click.option("--project", "-p", help="Limit it to this project.")
@click.option("--read-only", is_flag=True, help="Limit it to reading.")
@click.option("--days", type=click.IntRange(1, 3650), help="Days until it expires.")
@output_options
@pass_session
def token_create(
    session: Session,
    *,
    name: str,
    project: str | None,
    read_only: bool,
    days: int | None,
    output: Output,
) -> None:
    """Create a token and show it once; -q prints only the token."""
    made = session.client.create_token(name, project=project, read_only=read_only, days=days)
    output.one(made, lambda: _show_new_token(made), key="token")


@token.command("revoke")
@click.argument("token_ids", type=int, nargs=-1, required=True, metavar="ID...")
@pass_session
def token_revoke(session: Session, token_ids: tuple[int, ...]) -> None:
    """Revoke tokens."""
    for token_id in token_ids:
        session.client.revoke_token(token_id)
        say(f"Token {token_id}: revoked")


def _show_me(url: str, me: Me) -> None:
    rights = " (read only)" if me.read_only else ""
    admin = ", administrator" if me.is_admin else ""
    say(f"{me.username}{admin} at {url}, token {me.token or '-'}{rights}")
    for membership in me.projects:
        say(f"  {membership.slug}: {membership.role}")


def _show_new_token(made: NewToken) -> None:
    tell(f"Token {made.id} ({made.name}); it is not shown again:")
    say(made.token)
