"""`mportal`: the group of all commands, and how errors end them."""

from __future__ import annotations

import os
from typing import Any

import click

from monarch_client.cli import (
    accounts,
    arrays,
    attach,
    budgets,
    clouds,
    gateway_sessions,
    job_actions,
    jobs,
    logs,
    machines,
    meshes,
    projects,
    queues,
    schedules,
    secrets,
    sharing,
    stacks,
    submit,
    top,
    why,
)
from monarch_client.cli.exit_codes import BAD_REQUEST, PORTAL_TROUBLE
from monarch_client.cli.session import Session
from monarch_client.cli.terminal import complain, without_tokens
from monarch_client.errors import ClientError, InvalidSpecErrors
from monarch_client.rest.config import load
from monarch_client.version import __version__


class PortalGroup(click.Group):
    """A group of commands that turns errors into a message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which users need them, not alphabetically."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # click repeats the typed text in errors, and it may hold a token pasted by mistake.
            error.message = without_tokens(error.message)
            raise
        except InvalidSpecErrors as error:
            complain(error.message)
            ctx.exit(BAD_REQUEST)
        except ClientError as error:
            complain(error.message)
            ctx.exit(PORTAL_TROUBLE)


@click.group(cls=PortalGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mportal")
@click.pass_context
def cli(context: click.Context) -> None:
    """Submit, watch and stop distributed jobs on a Monarch portal."""
    if context.obj is None:
        context.obj = Session(load(os.environ))


for command in (
    accounts.login,
    accounts.whoami,
    submit.submit,
    submit.run,
    attach.dev,
    attach.attach,
    gateway_sessions.sessions,
    jobs.ps,
    jobs.get,
    why.why,
    jobs.events,
    logs.logs,
    top.top,
    meshes.meshes,
    stacks.stacks,
    jobs.wait_command,
    job_actions.cancel,
    job_actions.hold,
    job_actions.release,
    job_actions.prioritize,
    job_actions.extend,
    job_actions.rerun,
    job_actions.delete,
    schedules.schedule,
    arrays.array,
    machines.plan,
    machines.clusters,
    machines.infra,
    budgets.budget,
    budgets.usage,
    queues.queue,
    queues.quota,
    projects.project,
    projects.members,
    accounts.token,
    secrets.secret,
    clouds.admin,
):
    cli.add_command(command)
for group in sharing.GROUPS:
    clouds.admin.add_command(group)


def main() -> None:
    """Run the `mportal` script."""
    cli(prog_name="mportal")
