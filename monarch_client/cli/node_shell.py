"""The work of mportal ssh: a shell or command on a node, and the ports that lead there."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING

import click

from monarch_client.cli.exit_codes import BAD_REQUEST, DETACHED, PORTAL_TROUBLE
from monarch_client.cli.terminal import complain, tell
from monarch_client.gateway.forwarded_ports import ForwardedPorts
from monarch_client.gateway.node_session import NodeSession
from monarch_client.gateway.opening import opened_session
from monarch_client.gateway.remote_shell import RemoteShell, ShellLostError, has_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monarch_client.gateway.forward import Forward

# As OpenSSH's when its connection breaks.
_LOST = 255


def run_on_node(
    job: str,
    project: str,
    command: str | None,
    *,
    rank: int,
    forwards: Sequence[Forward],
    is_forced: bool,
) -> int:
    """Open the ports, and run the command on the node; return its exit code.

    An empty command is a shell; None only forwards ports until Ctrl-C. `is_forced`: a command has
    a terminal too.
    """
    stated = {
        "kind": "ssh",
        "rank": rank,
        "command": command or "",
        "forwards": [str(f) for f in forwards],
    }
    with closing(ForwardedPorts(forwards, complain)) as ports:
        with opened_session(job, project, stated) as opened:
            node_session = NodeSession(opened)
        with closing(node_session):
            _check_rank(node_session, rank)
            _open_ports(ports, node_session, rank)
            if command is None:
                return _wait(node_session)
            is_terminal = is_forced or (not command and has_terminal())
            return _run(node_session, rank, command, is_terminal=is_terminal)


def _check_rank(session: NodeSession, rank: int) -> None:
    ranks = session.ranks
    if rank in ranks:
        return
    if not ranks:
        complain(f"{session.job} was started by an older portal: rerun it to use `mportal ssh`.")
        click.get_current_context().exit(PORTAL_TROUBLE)
    known = "only node 0" if len(ranks) == 1 else f"nodes 0 to {ranks[-1]}"
    complain(f"{session.job} has no node {rank}; it has {known}.")
    click.get_current_context().exit(BAD_REQUEST)


def _open_ports(ports: ForwardedPorts, session: NodeSession, rank: int) -> None:
    for forward, address, port in ports.addresses:
        tell(f"{address}:{port} leads to {forward.host}:{forward.host_port} of node {rank}.")
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
