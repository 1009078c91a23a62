"""`mportal`: the group of all commands, and how errors end them."""

from __future__ import annotations

import os
import sys
from typing import Any, ClassVar

import click

from monarch_client.cli.exit_codes import exit_code_of_error
from monarch_client.cli.lazy_group import LazyGroup
from monarch_client.cli.session import Session
from monarch_client.cli.terminal import complain, without_tokens
from monarch_client.errors import ClientError
from monarch_client.rest.config import load
from monarch_client.version import __version__


class PortalGroup(LazyGroup):
    """All commands. Errors become a message and an exit code."""

    sections: ClassVar = {
        "Account": {
            "login": "accounts:login",
            "whoami": "accounts:whoami",
            "token": "accounts:token",
        },
        "Submit jobs": {
            "submit": "submit:submit",
            "run": "submit:run",
            "plan": "machines:plan",
            "template": "templates:template",
            "schedule": "schedules:schedule",
        },
        "Watch jobs": {
            "overview": "overview:overview",
            "ps": "jobs:ps",
            "view": "views:view_group",
            "get": "jobs:get",
            "why": "why:why",
            "graph": "graph:graph",
            "events": "jobs:events",
            "logs": "logs:logs",
            "top": "top:top",
            "metrics": "program_metrics:metrics",
            "history": "runs:history",
            "compare": "runs:compare",
            "meshes": "meshes:meshes",
            "stacks": "stacks:stacks",
            "wait": "waiting:wait_command",
        },
        "Change jobs": {
            "cancel": "job_actions:cancel",
            "hold": "job_actions:hold",
            "release": "job_actions:release",
            "prioritize": "job_actions:prioritize",
            "extend": "job_actions:extend",
            "label": "labels:label",
            "note": "labels:note",
            "rerun": "job_actions:rerun",
            "delete": "job_actions:delete",
            "array": "arrays:array",
        },
        "Use a job's hosts from this machine": {
            "dev": "attach:dev",
            "attach": "attach:attach",
            "sync": "sync:sync",
            "ssh": "ssh:ssh",
            "sessions": "gateway_sessions:sessions",
        },
        "Machines and costs": {
            "clusters": "machines:clusters",
            "infra": "machines:infra",
            "queue": "queues:queue",
            "quota": "queues:quota",
            "budget": "budgets:budget",
            "usage": "budgets:usage",
        },
        "Projects and administration": {
            "project": "projects:project",
            "members": "projects:members",
            "secret": "secrets:secret",
            "admin": "administration:admin",
        },
    }

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # click repeats the typed text in errors, and it may hold a token pasted by mistake.
            error.message = without_tokens(error.message)
            raise
        except ClientError as error:
            complain(error.message)
            ctx.exit(exit_code_of_error(error))


@click.group(cls=PortalGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mportal")
@click.pass_context
def cli(context: click.Context) -> None:
    """Submit, watch and stop distributed jobs on a Monarch portal."""
    if context.obj is None:
        context.obj = Session(load(os.environ))


def main() -> None:
    """Run the `mportal` script."""
    # httpx would import its own command line with rich and pygments, which takes 95 ms. It goes
    # without where that cannot be imported.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    cli(prog_name="mportal")
