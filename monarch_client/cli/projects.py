"""`mportal project` and `mportal members`: rename, archive and delete projects; set members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monarch_client.cli import completion
from monarch_client.cli.options import project_option
from monarch_client.cli.output import Output, duration, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say
from monarch_client.cli.verb_group import VerbGroup

if TYPE_CHECKING:
    from monarch_client.wire.projects import Member, Project, ProjectLimits

ROLES = ("viewer", "member", "maintainer", "admin")
PROJECT_COLUMNS = {
    "PROJECT": lambda project: project.slug,
    "NAME": lambda project: project.name,
    "ROLE": lambda project: project.role,
}
MEMBER_COLUMNS = {
    "USER": lambda member: member.username,
    "ROLE": lambda member: member.role,
    "ACCOUNT": lambda member: "active" if member.is_active else "inactive",
}


@click.group(cls=VerbGroup)
def project() -> None:
    """Manage projects."""


@project.command("ls")
@click.option("--archived", is_flag=True, help="Only archived projects.")
@output_options
@pass_session
def project_ls(session: Session, output: Output, *, archived: bool) -> None:
    """List your projects."""
    found = session.client.projects(state="archived" if archived else "active")
    output.rows(
        found,
        PROJECT_COLUMNS,
        key="slug",
        empty="You are in no project. Ask an admin of one to add you: mportal members set",
    )


@project.command("rename")
@click.argument("slug", shell_complete=completion.projects)
@click.argument("new_slug", required=False)
@click.option("--name", help="The name on pages.")
@pass_session
def project_rename(session: Session, slug: str, new_slug: str | None, name: str | None) -> None:
    """Rename a project without queued or running jobs.

    The old name works until another project takes it.
    """
    if new_slug is None and name is None:
        raise click.UsageError("Give a new name for addresses, or --name.")
    made = session.client.rename_project(slug, slug=new_slug, name=name)
    say(f"{slug}: now {made.slug} ({made.name})")


@project.command("laptops")
@click.argument("slug", shell_complete=completion.projects)
@click.option(
    "--allow/--refuse",
    "allowed",
    required=True,
    default=None,
    help="Whether laptops may attach.",
)
@pass_session
def project_laptops(session: Session, slug: str, *, allowed: bool) -> None:
    """Allow laptops to attach to jobs that have a driver, or refuse it.

    Jobs without a driver (`mportal dev`) need no permission. Open sessions continue.
    """
    made = session.client.allow_laptops(slug, allowed=allowed)
    say(f"{made.slug}: laptops {'may' if made.laptops_may_attach else 'may not'} attach")


@project.command("limits")
@click.argument("slug", shell_complete=completion.projects)
@output_options
@pass_session
def project_limits(session: Session, output: Output, *, slug: str) -> None:
    """Show how long jobs of a project may run, and its clusters be idle."""
    limits = session.client.project_limits(slug)
    output.one(limits, lambda: show_limits(slug, limits), key="weight")


@project.command("archive")
@click.argument("slug", shell_complete=completion.projects)
@pass_session
def project_archive(session: Session, slug: str) -> None:
    """Make a project read-only; its schedules are paused."""
    _show(session.client.archive_project(slug))


@project.command("unarchive")
@click.argument("slug", shell_complete=completion.projects)
@pass_session
def project_unarchive(session: Session, slug: str) -> None:
    """Let a project take jobs again; its schedules stay paused."""
    _show(session.client.unarchive_project(slug))


@project.command("delete")
@click.argument("slug", shell_complete=completion.projects)
@click.option("--confirm", metavar="SLUG", help="The project's name again, to skip the prompt.")
@pass_session
def project_delete(session: Session, slug: str, confirm: str | None) -> None:
    """Delete an archived or empty project permanently.

    Members, secrets, schedules, uploads and logs are deleted. Records of jobs and costs stay for
    administrators of the portal.
    """
    if confirm is None:
        confirm = click.prompt(f"Type {slug} to delete the project for good", err=True)
    session.client.delete_project(slug, confirm=confirm)
    say(f"{slug}: deleted")


@click.group(cls=VerbGroup)
def members() -> None:
    """Manage members of a project."""


@members.command("list")
@project_option
@output_options
@pass_session
def members_list(session: Session, *, project: str | None, output: Output) -> None:
    """List the members of a project with their roles."""
    found = session.client.members(session.project(project))
    output.rows(
        found,
        MEMBER_COLUMNS,
        key="username",
        empty="No members. To add one: mportal members set USER ROLE",
    )


@members.command("set")
@click.argument("username", shell_complete=completion.members)
@click.argument("role", type=click.Choice(ROLES))
@project_option
@output_options
@pass_session
def members_set(
    session: Session, *, username: str, role: str, project: str | None, output: Output
) -> None:
    """Add a user to a project, or change a role."""
    made = session.client.set_member(session.project(project), username, role)
    output.one(made, lambda: _show_member(made), key="username")


@members.command("remove")
@click.argument(
    "usernames", nargs=-1, required=True, metavar="USER...", shell_complete=completion.members
)
@project_option
@pass_session
def members_remove(session: Session, *, usernames: tuple[str, ...], project: str | None) -> None:
    """Remove members. Their jobs continue."""
    slug = session.project(project)
    for username in usernames:
        session.client.remove_member(slug, username)
        say(f"{username}: removed")


def show_limits(slug: str, limits: ProjectLimits) -> None:
    """Print the limits of a project that are in force."""
    longest, idle = limits.duration_in_force_s, limits.idle_in_force_minutes
    say(f"{slug}: max-duration {duration(longest) if longest else 'none'}")
    say(f"{slug}: max-idle {f'{idle} min' if idle else 'none'}")
    say(f"{slug}: weight {limits.weight:g}")


def _show(made: Project) -> None:
    say(f"{made.slug}: {made.state}")


def _show_member(made: Member) -> None:
    say(f"{made.username}: {made.role}")
