"""`mportal admin user`: the users of the installation and their sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch_client.cli.output import Output, age, local_day, local_time, output_options
from monarch_client.cli.projects import ROLES
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say, tell
from monarch_client.cli.verb_group import VerbGroup

if TYPE_CHECKING:
    from monarch_client import wire

USER_COLUMNS = {
    "USER": lambda user: user.username,
    "ACCOUNT": lambda user: "active" if user.is_active else "disabled",
    "ADMIN": lambda user: "yes" if user.is_admin else "",
    "SIGNED IN": lambda user: f"{age(user.last_sign_in_at)} ago" if user.last_sign_in_at else "",
    "SESSIONS": lambda user: str(user.sessions),
    "PROJECTS": lambda user: ", ".join(f"{row.project} ({row.role})" for row in user.projects),
}
SESSION_COLUMNS = {
    "ID": lambda row: row.id,
    "SIGNED IN": lambda row: f"{age(row.signed_in_at)} ago" if row.signed_in_at else "unknown",
    "EXPIRES": lambda row: local_day(row.expires_at),
    "ADDRESS": lambda row: row.address,
    "BROWSER": lambda row: row.browser,
}
_hours = click.option(
    "--hours", type=click.IntRange(1, 720), default=48, show_default=True, help="Until it expires."
)


@click.group(cls=VerbGroup)
def user() -> None:
    """Manage users of the installation."""


@user.command("ls")
@click.option("--search", "-s", default="", help="A part of the name.")
@click.option(
    "--state",
    type=click.Choice(["all", "active", "disabled"]),
    default="all",
    show_default=True,
    help="Only such accounts.",
)
@output_options
@pass_session
def user_ls(session: Session, output: Output, *, search: str, state: str) -> None:
    """List users with their projects."""
    rows: list[wire.users.User] = []
    cursor: str | None = ""
    while cursor is not None:
        page = session.client.users(q=search, state=state, cursor=cursor)
        rows += page.results
        cursor = page.next
    output.rows(
        rows,
        USER_COLUMNS,
        key="username",
        empty="No such users. To add one: mportal admin user invite NAME",
    )


@user.command("invite")
@click.argument("username")
@click.option("--project", "-p", default="", help="Make them a member of this project.")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="member",
    show_default=True,
    help="The role in the project.",
)
@_hours
@output_options
@pass_session
def user_invite(
    session: Session, *, username: str, project: str, role: str, hours: int, output: Output
) -> None:
    """Create a user and show the link that signs them in once."""
    made = session.client.invite_user(username, project=project, role=role, hours=hours)
    output.one(made, lambda: _show_link(made), key="url")


@user.command("link")
@click.argument("username")
@_hours
@output_options
@pass_session
def user_link(session: Session, *, username: str, hours: int, output: Output) -> None:
    """Show a new link that signs a user in once; earlier links no longer work."""
    made = session.client.link_user(username, hours=hours)
    output.one(made, lambda: _show_link(made), key="url")


@user.command("disable")
@click.argument("usernames", nargs=-1, required=True, metavar="USER...")
@pass_session
def user_disable(session: Session, usernames: tuple[str, ...]) -> None:
    """Disable users: their sessions end and their tokens are refused. Their jobs continue."""
    for username in usernames:
        session.client.change_user(username, is_active=False)
        say(f"{username}: disabled")


@user.command("enable")
@click.argument("usernames", nargs=-1, required=True, metavar="USER...")
@pass_session
def user_enable(session: Session, usernames: tuple[str, ...]) -> None:
    """Let disabled users sign in again."""
    for username in usernames:
        session.client.change_user(username, is_active=True)
        say(f"{username}: enabled")


@user.command("admin")
@click.argument("username")
@click.option(
    "--grant/--revoke",
    "is_admin",
    required=True,
    default=None,
    help="Give or take the rights of an administrator.",
)
@pass_session
def user_admin(session: Session, *, username: str, is_admin: bool) -> None:
    """Make a user an administrator of the installation, or an ordinary user."""
    session.client.change_user(username, is_admin=is_admin)
    say(f"{username}: {'administrator' if is_admin else 'no administrator'}")


@user.command("sessions")
@click.argument("username")
@output_options
@pass_session
def user_sessions(session: Session, output: Output, *, username: str) -> None:
    """List the browsers in which a user is signed in; `me` is you."""
    output.rows(
        session.client.user_sessions(username), SESSION_COLUMNS, empty="Signed in in no browser."
    )


@user.command("end-sessions")
@click.argument("username")
@click.argument("session_id", required=False, metavar="[ID]")
@pass_session
def user_end_sessions(session: Session, *, username: str, session_id: str | None) -> None:
    """End one session of a user, or all; `me` is you. Tokens still work."""
    session.client.end_sessions(username, session_id)
    say(f"{username}: {'session' if session_id else 'all sessions'} ended")


def _show_link(made: wire.users.Invitation) -> None:
    say(made.url)
    tell(f"It signs {made.username} in once, until {local_time(made.expires_at)}.")
