"""mportal attach and dev: programs on this machine that drive the meshes of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.options import SPEC_FILE, project_option, running_job_argument
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.submit import job_envs

program_argument = click.argument("program", nargs=-1, type=click.UNPROCESSED)


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "mportal attach ppo -- python program.py",
        "mportal attach ppo",
    ),
)
@running_job_argument
@click.option(
    "--sync",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Have `connect()` send the changes in this folder first.",
)
@program_argument
@project_option
@pass_session
def attach(
    session: Session,
    /,
    job: str,
    program: tuple[str, ...],
    project: str | None,
    folder: Path | None,
) -> None:
    """Run a program here that drives the meshes of a running job.

    In the program, `connect()` of monarch_client.gateway returns the meshes. Without a program it
    opens a Python prompt with `meshes`. The exit code is the program's.
    """
    from monarch_client.cli.attached import run_attached  # noqa: PLC0415 - 300 ms

    code = run_attached(session, job, project, folder, program)
    click.get_current_context().exit(code)


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "mportal dev --gpus H100:8 -- python program.py",
        "mportal dev -f job.yaml --keep",
    ),
)
@click.option("--file", "-f", "source", type=SPEC_FILE, help="A specification, instead of options.")
@click.option(
    "--mesh", "meshes", multiple=True, metavar="NAME=N", help="Default: workers=1. Repeatable."
)
@click.option("--gpus", help="Accelerators of each node, such as A100:8.")
@click.option("--infra", help="Where to run, such as slurm or aws/us-east-1.")
@click.option("--workdir", type=click.Path(), help="A folder to upload.")
@click.option("--setup", help="A command to run on every node first.")
@click.option(
    "--idle",
    "idle_minutes",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="End it after so many minutes with no program attached.",
)
@click.option("--keep", is_flag=True, help="Leave it running when the program has ended.")
@click.option("--name", help="The job's name.")
@project_option
@job_envs
@program_argument
@pass_session
def dev(session: Session, /, program: tuple[str, ...], project: str | None, **options: Any) -> None:
    """Start workers for a program here, and run it attached to them.

    Without a program it opens a Python prompt with `meshes`. When that ends, the workers are ended
    too, unless --keep is given. They end by themselves after --idle minutes without a program.
    """
    from monarch_client.cli.attached import run_with_workers  # noqa: PLC0415 - 300 ms

    code = run_with_workers(session, project, program, **options)
    click.get_current_context().exit(code)
