"""`mportal view`: saved views of the job table, which `mportal ps --view` lists."""

from __future__ import annotations

import click

from monarch_client.cli.options import project_option
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say
from monarch_client.cli.verb_group import VerbGroup

COLUMNS = {
    "ID": lambda view: str(view.id),
    "NAME": lambda view: view.name,
    "SHARED": lambda view: "yes" if view.is_shared else "no",
    "BY": lambda view: view.owner,
    "QUERY": lambda view: view.query,
}


@click.group("view", cls=VerbGroup)
def view_group() -> None:
    """Manage saved views of the job table."""


@view_group.command("list")
@project_option
@output_options
@pass_session
def view_list(session: Session, *, project: str | None, output: Output) -> None:
    """List your views, and those that others share."""
    output.rows(
        session.client.views(session.project(project)),
        COLUMNS,
        empty="No views. To save one: mportal view save NAME QUERY",
    )


@view_group.command("save")
@click.argument("name")
@click.argument("query")
@click.option("--shared", is_flag=True, help="All members see it.")
@project_option
@output_options
@pass_session
def view_save(
    session: Session, *, name: str, query: str, shared: bool, project: str | None, output: Output
) -> None:
    """Save QUERY, such as "status=FAILED&since=24h", under NAME."""
    view = session.client.save_view(session.project(project), name, query, shared=shared)
    output.one(view, lambda: say(f"{view.name}: {view.url}"))


@view_group.command("delete")
@click.argument("view_id", type=int, metavar="ID")
@project_option
@pass_session
def view_delete(session: Session, *, view_id: int, project: str | None) -> None:
    """Delete a view by the number that `list` shows."""
    session.client.delete_view(session.project(project), view_id)
    say(f"View {view_id}: deleted")
