"""Commands that make a job: submit, from a file; run, from a command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.options import SPEC_FILE, project_option
from monarch_client.cli.output import output_options
from monarch_client.cli.session import Session, pass_session

F = TypeVar("F", bound=Callable[..., Any])


def _pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse K=V, or K alone for this shell's value of it."""
    pairs = {}
    for text in values:
        key, is_given, value = text.partition("=")
        if not is_given and key not in os.environ:
            raise click.BadParameter(f"{key} has no value here; give {key}=VALUE.")
        pairs[key] = value if is_given else os.environ[key]
    return pairs


job_envs = click.option(
    "--env", "-e", "envs", multiple=True, metavar="K=V", callback=_pairs,
    help="Set a variable; K alone takes this shell's value. Repeatable.",
)  # fmt: skip


def job_options(command: F) -> F:
    """Give a command --project, --name, --env and what they have in common."""
    name = click.option("--name", help="The job's name.")
    hold = click.option("--hold", is_flag=True, help="Keep it queued until `mportal release JOB`.")
    dry_run = click.option(
        "--dry-run", "is_dry", is_flag=True,
        help="Show where each value comes from and which files would be uploaded; submit nothing.",
    )  # fmt: skip
    estimate = click.option(
        "--estimate-cost", "is_estimate", is_flag=True,
        help="Show where it would run and what it costs; submit nothing.",
    )  # fmt: skip
    return project_option(name(job_envs(hold(dry_run(estimate(output_options(command)))))))


@click.command(
    epilog=examples(
        "mportal submit job.yaml",
        "mportal submit job.yaml -F -e LR=0.01",
        "mportal submit job.yaml --estimate-cost",
    )
)
@click.argument("files", type=SPEC_FILE, nargs=-1)
@click.option("--file", "-f", "named", type=SPEC_FILE, help="The file, as an option.")
@click.option("--follow/--detach", "-F/-d", default=False, help="Follow the job to its end.")
@click.option(
    "--verbose", "-v", "is_verbose", is_flag=True, help="List uploaded files, and submit."
)
@job_options
@pass_session
def submit(session: Session, /, **options: Any) -> None:
    """Submit a job from a YAML file; - is standard input. Its `workdir` is uploaded.

    Several files, or documents of one, are submitted together, all or none: their jobs may depend
    on each other. With --follow the exit code is the job's; Ctrl-C leaves the job running.
    """
    from monarch_client.cli.sending import submit_files  # noqa: PLC0415 - 300 ms

    submit_files(session, **options)


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "mportal run -- nvidia-smi",
        "mportal run -N 2 --gpus H100:8 --workdir . -- python train.py",
        "mportal run --mesh trainers=4 -- python driver.py",
    ),
)
@click.option("--nodes", "-N", "num_nodes", type=click.IntRange(1), help="Default: 1.")
@click.option(
    "--mesh", "meshes", multiple=True, metavar="NAME=N", help="Make it a Monarch job. Repeatable."
)
@click.option("--workdir", type=click.Path(), help="A folder to upload.")
@click.option("--setup", help="A command to run on every node first.")
@click.option("--gpus", help="Accelerators of each node, such as A100:8.")
@click.option("--infra", help="Where to run, such as slurm or aws/us-east-1.")
@click.option("--spot", is_flag=True, help="Use spot machines.")
@click.option("--follow/--detach", "-F/-d", default=True, help="Follow it to its end, or detach.")
@job_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@pass_session
def run(session: Session, /, command: tuple[str, ...], **options: Any) -> None:
    """Run a command as a job, on every node, and follow it.

    The exit code is the job's; Ctrl-C leaves the job running. With --mesh the command is the
    driver and runs once.
    """
    from monarch_client.cli.sending import submit_command  # noqa: PLC0415 - 300 ms

    meshes = meshes_of(options.pop("meshes"))
    submit_command(session, command, meshes=meshes, **options)


def meshes_of(texts: tuple[str, ...]) -> dict[str, int]:
    """Parse NAME=N of each mesh."""
    meshes = {}
    for text in texts:
        name, _, count = text.partition("=")
        if not count.isdecimal():
            raise click.BadParameter(f"{text} is not NAME=N, such as trainers=2.")
        meshes[name] = int(count)
    return meshes
