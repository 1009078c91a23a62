"""mportal ssh: a shell or command on a node of a job, and ports that lead there."""

from __future__ import annotations

import shlex
from typing import Any

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.options import project_option, running_job_argument
from monarch_client.cli.session import Session, pass_session
from monarch_client.gateway.forward import Forward


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


@click.command(
    epilog=examples(
        "mportal ssh ppo",
        "mportal ssh ppo -r 3 -- nvidia-smi",
        "mportal ssh ppo -L 6006 -N",
    )
)
@running_job_argument
@click.argument("command", metavar="[-- COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--node",
    "--rank",
    "-r",
    "rank",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The node.",
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
    """Open a shell on a node of a running job, or run a command.

    JOB is a number or a name. One word after -- is a command of bash, several are a program and its
    arguments. Without a terminal here, or with a COMMAND, input and output are passed on byte by
    byte. The exit code is the command's; 255 if the connection is lost.
    """
    is_forward_only = options.pop("is_forward_only")
    if is_forward_only and (command or not options["forwards"]):
        raise click.UsageError("-N needs -L, and no COMMAND.")
    from monarch_client.cli.node_shell import run_on_node  # noqa: PLC0415 - 200 ms

    text = command[0] if len(command) == 1 else shlex.join(command)
    run = None if is_forward_only else text
    code = run_on_node(job, project or session.config.project, run, **options)
    click.get_current_context().exit(code)
