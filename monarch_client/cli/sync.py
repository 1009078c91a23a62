"""mportal sync: the code of a running job, kept equal to a folder of this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monarch_client.cli import completion
from monarch_client.cli.exit_codes import PORTAL_TROUBLE
from monarch_client.cli.jobs import project_option
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import complain, say, status_line, tell
from monarch_client.errors import ClientError
from monarch_client.gateway.opening import find_job, opened_session
from monarch_client.sync.sending import SyncProgress
from monarch_client.sync.watching import FolderWatch

if TYPE_CHECKING:
    from monarch_client.gateway.code_sync import CodeSync, SyncResult
    from monarch_client.gateway.node_session import NodeSession

_SHOW_EVERY_S = 0.1
_KIB = 1024


@click.command()
@click.argument("job", metavar="JOB", shell_complete=completion.job_ids)
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
    """Send the changes in PATH (default: here) to all nodes of a running job.

    Only changed blocks of files travel, and all nodes switch at once, or none. Deletions travel,
    ignored files do not. The job needs `portal.gateway`.
    """
    # These need packages of the extra `gateway`.
    from monarch_client.gateway.code_sync import CodeSync  # noqa: PLC0415
    from monarch_client.gateway.node_session import NodeSession  # noqa: PLC0415

    slug, number = find_job(session.client, job, project or session.config.project)
    with opened_session(f"{slug}/{number}", None) as opened:
        attached = NodeSession(opened)
    try:
        code = CodeSync(attached, path, _ProgressLine().show)
        tell(f"Syncing {path.absolute()} to job {number}.")
        if not is_watching:
            _sync_once(code, number, output)
            return
        _watch(code, number, output, attached)
    finally:
        attached.close()


def _sync_once(code: CodeSync, number: int, output: Output) -> None:
    try:
        result = code.run()
    finally:
        status_line("")
    output.one(result, lambda: say(_summary(number, result)), key="tree")
    for rank, reason in result.late.items():
        tell(f"Rank {rank} follows once it is back: {reason}.")


def _watch(code: CodeSync, number: int, output: Output, attached: NodeSession) -> None:
    """Sync at each change until Ctrl-C, or the end of the session."""
    watch = FolderWatch(code.folders.folders[0], attached.lost)
    try:
        is_watching = True
        while is_watching:
            try:
                _sync_once(code, number, output)
            except ClientError as error:
                if attached.lost.is_set():
                    break
                complain(error.message)
            is_watching = watch.wait(code.is_changed)
    except KeyboardInterrupt:
        return
    complain(str(attached.error))
    click.get_current_context().exit(PORTAL_TROUBLE)


class _ProgressLine:
    """The progress of a sync, in one line of a terminal."""

    def __init__(self) -> None:
        self._shown_at = 0.0

    def show(self, progress: SyncProgress) -> None:
        """Show it, a few times a second."""
        now = time.monotonic()
        if now - self._shown_at < _SHOW_EVERY_S:
            return
        self._shown_at = now
        if progress.all_ranks:
            status_line(f"Switching: {progress.ready_ranks}/{progress.all_ranks} nodes are ready")
        else:
            sizes = f"{_size(progress.sent_bytes)} of {_size(progress.all_bytes)}"
            status_line(f"Sending: {progress.files}/{progress.all_files} files, {sizes}")


def _summary(number: int, result: SyncResult) -> str:
    nodes = "1 node" if result.ranks == 1 else f"{result.ranks} nodes"
    sent = f"{_count(result.files, 'file')} ({_size(result.sent_bytes)}) sent"
    return f"{nodes} of job {number} have the code: {sent} in {result.seconds:.1f} s."


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def _size(size_bytes: int) -> str:
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < _KIB:
            break
        size, unit = size / _KIB, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
