"""The work of mportal sync: one sync or one at each change, and what it prints."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import click

from monarch_client.cli.exit_codes import PORTAL_TROUBLE
from monarch_client.cli.terminal import complain, say, status_line, tell
from monarch_client.errors import ClientError
from monarch_client.gateway.code_sync import CodeSync, SyncResult
from monarch_client.gateway.node_session import NodeSession
from monarch_client.gateway.opening import find_job, opened_session
from monarch_client.runner.base import process_end
from monarch_client.sync.watching import FolderWatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from monarch_client.cli.output import Output
    from monarch_client.cli.session import Session
    from monarch_client.sync.sending import SyncProgress

_SHOW_EVERY_S = 0.1
# Where lines stay, as in a log of CI.
_PRINT_EVERY_S = 5.0
_KIB = 1024


def sync_code(
    session: Session,
    job: str,
    project: str | None,
    path: Path,
    output: Output,
    *,
    is_watching: bool,
) -> None:
    """Send the changes in a folder to the nodes of a job, once or at each change."""
    slug, number = find_job(session.client, job, project or session.config.project)
    with opened_session(f"{slug}/{number}", None, {"kind": "sync"}) as opened:
        attached = NodeSession(opened)
    with closing(attached), closing(CodeSync(attached, path, _ProgressLine().show)) as code:
        tell(f"Syncing {path.absolute()} to job {number}.")
        if is_watching:
            watch = FolderWatch(path.absolute(), attached.lost)
            _watch(watch, attached, code, lambda: _sync_once(code, number, output))
        else:
            _sync_once(code, number, output)
            _report_unkept(_await_kept(code))


def _sync_once(code: CodeSync, number: int, output: Output) -> None:
    try:
        result = code.run()
    finally:
        status_line("")
    output.one(result, lambda: say(_summary(number, result)), key="tree")
    for rank, reason in result.late.items():
        tell(f"Node {rank} follows once it is back: {reason}.")
    _report_unkept(result.unkept)


def _await_kept(code: CodeSync) -> str:
    """Return why the portal does not keep large code, or "". Ctrl-C ends the wait."""
    if not code.is_keeping:
        return ""
    status_line("The head node sends the code to the portal, for a recovered attempt")
    try:
        return code.await_kept()
    except KeyboardInterrupt:
        return ""
    finally:
        status_line("")


def _report_unkept(reason: str) -> None:
    if reason:
        reason = reason.removesuffix(".")
        tell(f"The portal does not keep this code for a recovered attempt: {reason}.")


def _watch(
    watch: FolderWatch, attached: NodeSession, code: CodeSync, sync_once: Callable[[], None]
) -> None:
    """Sync at each change until Ctrl-C, or the end of the session."""
    try:
        is_watching = True
        while is_watching:
            try:
                sync_once()
            except ClientError as error:
                if attached.lost.is_set():
                    break
                complain(error.message)
            is_watching = watch.wait(code.is_changed)
    except KeyboardInterrupt:
        # `watchfiles` makes one of every signal.
        process_end.leave_again()
        return
    complain(str(attached.error))
    click.get_current_context().exit(PORTAL_TROUBLE)


class _ProgressLine:
    """The progress of a sync: one line of a terminal, or one every few seconds elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = 0.0 if self._is_terminal else time.monotonic()

    def show(self, progress: SyncProgress) -> None:
        """Show it, a few times a second on a terminal."""
        now = time.monotonic()
        if now - self._shown_at < (_SHOW_EVERY_S if self._is_terminal else _PRINT_EVERY_S):
            return
        self._shown_at = now
        (status_line if self._is_terminal else tell)(_progress_text(progress))


def _progress_text(progress: SyncProgress) -> str:
    if progress.all_ranks:
        return f"Switching: {progress.ready_ranks}/{progress.all_ranks} nodes are ready"
    sizes = f"{_size(progress.sent_bytes)} of {_size(progress.all_bytes)}"
    return f"Sending: {progress.files:,}/{progress.all_files:,} files, {sizes}"


def _summary(number: int, result: SyncResult) -> str:
    nodes = "1 node" if result.ranks == 1 else f"{result.ranks} nodes"
    sent = f"{_count(result.files, 'file')} ({_size(result.sent_bytes)}) sent"
    verb = "has" if result.ranks == 1 else "have"
    return f"{nodes} of job {number} {verb} the code: {sent} in {result.seconds:.1f} s."


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def _size(size_bytes: int) -> str:
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < _KIB:
            break
        size, unit = size / _KIB, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
