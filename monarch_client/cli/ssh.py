"""mportal ssh: a shell or command on a node of a job, and ports that lead there."""

from __future__ import annotations

import logging
import shlex
from contextlib import closing
from typing import Any

import click

from monarch_client.cli.exit_codes import BAD_REQUEST, DETACHED, PORTAL_TROUBLE
from monarch_client.cli.options import project_option
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import complain, tell
from monarch_client.gateway.forwarded_ports import Forward, ForwardedPorts
from monarch_client.gateway.node_session import NodeSession
from monarch_client.gateway.opening import opened_session
from monarch_client.gateway.remote_shell import RemoteShell, ShellLostError, has_terminal

# As OpenSSH's when its connection breaks.
_LOST = 255


class _ForwardType(click.ParamType):
    """A forwarded port, as OpenSSH's -L writes it."""

    name = "forward"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Forward:
        """Parse the text."""
        try:
            return value if isinstance(value, Forward) else Forward.parse(value)
        except ValueError:
            self.fail(f"{value!r} is not PORT or [BIND:]PORT:HOST:PORT", param, ctx)


@click.command()
@click.argument("job", metavar="JOB")
@click.argument("command", metavar="[-- COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--rank", "-r", type=click.IntRange(0), default=0, show_default=True, help="The node."
)
@click.option("--tty", "-t", "is_forced", is_flag=True, help="Open a terminal for a COMMAND too.")
@click.option(
    "--forward",
    "-L",
    "forwards",
    multiple=True,
    type=_ForwardType(),
    metavar="[[BIND:]PORT:HOST:]PORT",
    help="Lead a port of this machine to HOST:PORT as the node reaches it. Repeatable.",
)
@click.option("--no-shell", "-N", "is_forward_only", is_flag=True, help="Forward ports only.")
@project_option
@pass_session
def ssh(
    session: Session, /, job: str, project: str | None, command: tuple[str, ...], **options: Any
) -> None:
    """Open a shell on a node of a running job, or run a command there.

    JOB is a number or a name. One word after -- is a command of bash, several are a program and its
    arguments. Without a terminal here, or with a COMMAND, input and output are passed on byte by
    byte. The exit code is the command's; 255 if the connection is lost.
    """
    rank, forwards = options["rank"], options["forwards"]
    is_forward_only = options["is_forward_only"]
    if is_forward_only and (command or not forwards):
        raise click.UsageError("-N needs -L, and no COMMAND.")
    text = command[0] if len(command) == 1 else shlex.join(command)
    stated = {"kind": "ssh", "rank": rank, "command": text, "forwards": [str(f) for f in forwards]}
    exits = click.get_current_context().exit
    with closing(ForwardedPorts(forwards, complain)) as ports:
        with opened_session(job, project or session.config.project, stated) as opened:
            node_session = NodeSession(opened)
        with closing(node_session):
            _check_rank(node_session, rank)
            _open_ports(ports, node_session, rank)
            if is_forward_only:
                exits(_wait(node_session))
            is_terminal = options["is_forced"] or (not command and has_terminal())
            exits(_run(node_session, rank, text, is_terminal=is_terminal))


def _check_rank(session: NodeSession, rank: int) -> None:
    ranks = session.ranks
    if rank in ranks:
        return
    if not ranks:
        complain(f"{session.job} was started by an older portal: rerun it to use `mportal ssh`.")
        click.get_current_context().exit(PORTAL_TROUBLE)
    known = "only rank 0" if len(ranks) == 1 else f"ranks 0 to {ranks[-1]}"
    complain(f"{session.job} has no rank {rank}; it has {known}.")
    click.get_current_context().exit(BAD_REQUEST)


def _open_ports(ports: ForwardedPorts, session: NodeSession, rank: int) -> None:
    for forward, address, port in ports.addresses:
        tell(f"{address}:{port} leads to {forward.host}:{forward.host_port} of rank {rank}.")
    ports.serve(session.node_socket, rank)


def _wait(session: NodeSession) -> int:
    """Wait until Ctrl-C, or until the session is lost."""
    try:
        session.lost.wait()
    except KeyboardInterrupt:
        return DETACHED
    complain(str(session.error))
    return _LOST


def _run(session: NodeSession, rank: int, command: str, *, is_terminal: bool) -> int:
    # Its warnings are about calls that wait: a shell does not.
    logging.getLogger("monarch_client.gateway").setLevel(logging.ERROR)
    try:
        return RemoteShell(session, rank, command, has_terminal=is_terminal).run()
    except ShellLostError as error:
        complain(str(error))
        return _LOST
