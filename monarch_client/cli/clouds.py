"""`mportal admin cloud`: credentials of clouds, for administrators of the installation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monarch_client.cli.output import Output, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say, tell
from monarch_client.cli.verb_group import VerbGroup
from monarch_client.errors import RefusedError

if TYPE_CHECKING:
    from monarch_client.wire.account import CloudEntry, CloudState

ENTRY_COLUMNS = {
    "CLOUD": lambda entry: entry.kind,
    "NAME": lambda entry: entry.name,
    "WHOSE": lambda entry: entry.about,
}
STATE_COLUMNS = {
    "CLOUD": lambda state: state.name,
    "USABLE": lambda state: "yes" if state.is_enabled else "no",
    "WHY NOT": lambda state: "" if state.is_enabled else state.reason,
}
CHECK_S, ASK_AGAIN_S = 120.0, 2.0
_file = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.group(cls=VerbGroup)
def cloud() -> None:
    """Manage credentials of clouds."""


@cloud.group("add")
def cloud_add() -> None:
    """Store credentials of a cloud for the portal's SkyPilot."""


@cloud_add.command()
@click.option("--file", type=_file, help="A credentials file; all its profiles are stored.")
@click.option("--profile", help="The name of one key pair. Default: default.")
@click.option("--access-key-id", help="The key pair's id; its secret is prompted for.")
@pass_session
def aws(
    session: Session, *, file: Path | None, profile: str | None, access_key_id: str | None
) -> None:
    """Store a credentials file or a key pair of AWS."""
    if (file is None) == (access_key_id is None):
        raise click.UsageError("Give --file, or --access-key-id.")
    content = {"file": _content_of(file)} if file else {"access_key_id": access_key_id or ""}
    if access_key_id:
        content["secret_access_key"] = click.prompt("Secret access key", hide_input=True, err=True)
    _add(session, "aws", content | ({"profile": profile} if profile else {}))


@cloud_add.command()
@click.option("--subscription-id", required=True, help="The subscription that pays.")
@click.option("--tenant-id", required=True, help="The directory of the service principal.")
@click.option("--client-id", required=True, help="The id of the service principal.")
@pass_session
def azure(session: Session, /, **ids: str) -> None:
    """Store a service principal of Azure; its client secret is prompted for."""
    secret = click.prompt("Client secret", hide_input=True, err=True)
    _add(session, "azure", {**ids, "client_secret": secret})


@cloud_add.command("lambda")
@pass_session
def lambda_cloud(session: Session) -> None:
    """Store an API key of Lambda Cloud, which is prompted for."""
    _add(session, "lambda", {"api_key": click.prompt("API key", hide_input=True, err=True)})


@cloud_add.command()
@click.option("--file", type=_file, required=True, help="The key file of a service account.")
@pass_session
def gcp(session: Session, file: Path) -> None:
    """Store a service account key of Google Cloud."""
    _add(session, "gcp", {"file": _content_of(file)})


@cloud_add.command()
@click.option(
    "--file", type=_file, required=True, help="A kubeconfig; all its contexts are stored."
)
@pass_session
def kubernetes(session: Session, file: Path) -> None:
    """Store a kubeconfig of Kubernetes."""
    _add(session, "kubernetes", {"file": _content_of(file)})


@cloud_add.command()
@click.argument("name")
@click.option("--host", required=True, help="The login node.")
@click.option("--user", required=True, help="The account there.")
@click.option("--port", default=22, show_default=True, help="The port of its ssh server.")
@click.option("--key", type=_file, required=True, help="A private key without a passphrase.")
@click.option("--proxy-jump", default="", help="user@host:port of a jump host.")
@pass_session
def slurm(session: Session, /, name: str, key: Path, port: int, **fields: str) -> None:
    """Store a Slurm login node that is reached by ssh."""
    content = {"name": name, "port": str(port), "key": _content_of(key), **fields}
    _add(session, "slurm", {field: value for field, value in content.items() if value})


@cloud.command("list")
@output_options
@pass_session
def cloud_list(session: Session, output: Output) -> None:
    """List stored credentials without their content."""
    rows: list[CloudEntry] = session.client.clouds()
    output.rows(
        rows,
        ENTRY_COLUMNS,
        key="name",
        empty="No credentials are stored. To add some: mportal admin cloud add -h",
    )


@cloud.command("check")
@output_options
@pass_session
def cloud_check(session: Session, output: Output) -> None:
    """Check which clouds SkyPilot can use, and why not others."""
    output.rows(_checked(session), STATE_COLUMNS, key="name", empty="SkyPilot knows no clouds.")


@cloud.command("remove")
@click.argument("kind")
@click.argument("name")
@pass_session
def cloud_remove(session: Session, kind: str, name: str) -> None:
    """Delete credentials."""
    session.client.remove_cloud(kind, name)
    say(f"{kind} {name}: removed")


def _add(session: Session, kind: str, content: dict[str, str]) -> None:
    for name in session.client.add_cloud(kind, content):
        say(f"{kind} {name}: added")
    tell("Run `mportal admin cloud check` to see whether SkyPilot can use it.")


def _checked(session: Session) -> list[CloudState]:
    """Return SkyPilot's answer, once it has checked."""
    until = time.monotonic() + CHECK_S
    while (answer := _answer(session, is_last=time.monotonic() > until)) is None:
        time.sleep(ASK_AGAIN_S)
    return answer


def _answer(session: Session, *, is_last: bool) -> list[CloudState] | None:
    try:
        return session.client.check_clouds()
    except RefusedError as error:
        if error.portal_code != "still_looking" or is_last:
            raise
        return None


def _content_of(file: Path) -> str:
    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            return str(opened.read())
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not text.") from None
