"""mportal sync: the code of a running job, kept equal to a folder of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.options import project_option, running_job_argument
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.session import Session, pass_session

if TYPE_CHECKING:
    pass


@click.command(
    epilog=examples(
        "mportal sync ppo",
        "mportal sync ppo src -w",
    )
)
@running_job_argument
@click.argument(
    "path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path()
)
@click.option("--watch", "-w", "is_watching", is_flag=True, help="Sync again at each change.")
@project_option
@output_options
@pass_session
def sync(
    session: Session,
    /,
    job: str,
    path: Path,
    project: str | None,
    output: Output,
    *,
    is_watching: bool,
) -> None:
    """Send the changes in a folder to all nodes of a running job.

    PATH is the folder, by default the current one. Only changed blocks of files travel, and all
    nodes switch at once, or none. Deletions travel, ignored files do not. The job needs
    `portal.gateway`.
    """
    from monarch_client.cli.code_sync import sync_code  # noqa: PLC0415 - 150 ms

    sync_code(session, job, project, path, output, is_watching=is_watching)
