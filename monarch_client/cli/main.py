"""`mportal`: the group of all commands, and how errors end them."""

from __future__ import annotations

import os
import sys
from typing import Any, ClassVar

import click

from monarch_client.cli.exit_codes import exit_code_of_error
from monarch_client.cli.lazy_group import LazyGroup
from monarch_client.cli.session import Session
from monarch_client.cli.standard_streams import open_closed
from monarch_client.cli.terminal import complain, without_tokens
from monarch_client.errors import ClientError
from monarch_client.extras import named_extras
from monarch_client.runner.base import process_end
from monarch_client.version import __version__


class PortalGroup(LazyGroup):
    """All commands. Errors become a message and an exit code."""

    sections: ClassVar = {
        "Account": {
            "login": ("accounts:login", "Store a portal's address and a token for later commands."),
            "whoami": ("accounts:whoami", "Show your user name and roles."),
            "token": ("accounts:token", "Manage your API tokens."),
        },
        "Submit jobs": {
            "submit": ("submit:submit", "Submit a job from a YAML file; - is standard input."),
            "run": ("submit:run", "Run a command as a job, on every node, and follow it."),
            "plan": ("machines:plan", "Show where a job would run and what it costs."),
            "template": ("templates:template", "Save and run job templates."),
            "schedule": ("schedules:schedule", "Manage schedules."),
        },
        "Watch jobs": {
            "overview": (
                "overview:overview",
                "Show running, waiting and failed jobs, GPUs, and costs.",
            ),
            "ps": ("jobs:ps", "List jobs, newest first."),
            "view": ("views:view_group", "Manage saved views of the job table."),
            "get": ("jobs:get", "Show one job with its stages and workers."),
            "why": ("why:why", "Show why a job waits."),
            "graph": ("graph:graph", "Show a job's dependencies and dependents as a tree."),
            "events": ("jobs:events", "Show a job's history, oldest first, with times and users."),
            "logs": ("logs:logs", "Print a job's log."),
            "top": ("top:top", "Show the load of a job's hosts, and its tasks."),
            "metrics": (
                "program_metrics:metrics",
                "Show the metrics that a job's program reports.",
            ),
            "history": ("runs:history", "List the runs of one name, newest first."),
            "compare": ("runs:compare", "Compare two to six jobs."),
            "meshes": ("meshes:meshes", "Show the hosts, procs and actors of a Monarch job."),
            "stacks": ("stacks:stacks", "Show the current Python calls of every thread on a node."),
            "wait": ("waiting:wait_command", "Wait until jobs have ended."),
        },
        "Change jobs": {
            "cancel": ("job_actions:cancel", "Cancel jobs."),
            "hold": ("job_actions:hold", "Keep queued jobs from starting until they are released."),
            "release": ("job_actions:release", "Release held jobs."),
            "prioritize": ("job_actions:prioritize", "Change the PRIORITY of queued jobs."),
            "extend": (
                "job_actions:extend",
                "Add DURATION, such as 2h or 90m, to a job's max_duration.",
            ),
            "label": ("labels:label", "Label jobs: NAME=VALUE sets a label, NAME- removes it."),
            "note": ("labels:note", 'Set the note of a job; "" removes it.'),
            "rerun": ("job_actions:rerun", "Submit the specifications of jobs again as new jobs."),
            "delete": ("job_actions:delete", "Delete ended jobs with their logs permanently."),
            "array": ("arrays:array", "Show, cancel and rerun job arrays."),
        },
        "Use a job's hosts from this machine": {
            "dev": ("attach:dev", "Start workers for a program here, and run it attached to them."),
            "attach": (
                "attach:attach",
                "Run a program here that drives the meshes of a running job.",
            ),
            "sync": ("sync:sync", "Send the changes in a folder to all nodes of a running job."),
            "ssh": ("ssh:ssh", "Open a shell on a node of a running job, or run a command."),
            "sessions": (
                "gateway_sessions:sessions",
                "List the programs and shells that are attached to a job.",
            ),
        },
        "Machines and costs": {
            "clusters": ("machines:clusters", "List clusters with owner, age and cost."),
            "infra": ("machines:infra", "List clouds, why some cannot be used, and free GPUs."),
            "queue": ("queues:queue", "Show queues, pools and queued jobs."),
            "quota": ("queues:quota", "Show quotas: limits on running jobs."),
            "budget": ("budgets:budget", "Manage the monthly budget of a project."),
            "usage": ("budgets:usage", "Show the usage of a project: US$, node hours, GPU hours."),
        },
        "Projects and administration": {
            "project": ("projects:project", "Manage projects."),
            "members": ("projects:members", "Manage members of a project."),
            "secret": ("secrets:secret", "Manage secrets of a project."),
            "admin": (
                "administration:admin",
                "Run commands for administrators of the installation.",
            ),
        },
    }

    # Of SkyPilot, Ray, Slurm, Kubernetes, Docker, and plain words.
    synonyms: ClassVar = {
        **dict.fromkeys(("stop", "kill", "scancel", "abort"), "cancel"),
        **dict.fromkeys(("list", "ls", "jobs", "squeue", "status"), "ps"),
        **dict.fromkeys(("launch", "sbatch", "apply", "create", "start"), "submit"),
        **dict.fromkeys(("srun", "exec"), "run"),
        **dict.fromkeys(("show", "describe", "inspect", "info"), "get"),
        **dict.fromkeys(("log", "tail"), "logs"),
        **dict.fromkeys(("shell", "terminal"), "ssh"),
        **dict.fromkeys(("down", "nodes", "machines", "sinfo"), "clusters"),
        **dict.fromkeys(("rm", "remove"), "delete"),
        **dict.fromkeys(("pause", "suspend"), "hold"),
        **dict.fromkeys(("resume", "unhold"), "release"),
        **dict.fromkeys(("retry", "resubmit", "requeue"), "rerun"),
        **dict.fromkeys(("cost", "costs"), "usage"),
    }

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            with named_extras():
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
    """Submit, watch and stop distributed jobs on a Monarch portal.

    Begin with `mportal login`. `mportal COMMAND --help` describes a command. JOB is the number of
    a job, or a name: of jobs with one name the newest.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False
    if context.obj is None:
        context.obj = Session()


def main() -> None:
    """Run the `mportal` script."""
    open_closed()
    # httpx would import its own command line with rich and pygments, which takes 95 ms. It goes
    # without where that cannot be imported.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    process_end.leave_on_signals()
    cli(prog_name="mportal")
