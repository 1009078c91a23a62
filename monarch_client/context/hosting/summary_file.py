"""The file from which the runner of a node reads the summary of a context.

Its folder is in the environment of a job's programs and workers; elsewhere there is none.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from monarch_client.wire.tasks import ContextSummary

FOLDER_VARIABLE = "MPORTAL_TASKS_FOLDER"


class SummaryFile:
    """The summary of one context on this node."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = b""

    def write(self, summary: bytes) -> None:
        """Replace the summary."""
        self._written = summary
        new = self._path.with_suffix(".new")
        # A full disk, or the folder of an attempt that has ended: the context goes on without it.
        with suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            new.write_bytes(summary)
            new.replace(self._path)

    def end(self) -> None:
        """Write that the context has ended, in place of a driver that cannot write it."""
        if self._written:
            summary = msgspec.json.decode(self._written, type=ContextSummary)
            self.write(msgspec.json.encode(replace(summary, is_open=False)))


def summary_file(name: str) -> SummaryFile | None:
    """Return the file of a context, by a name that is unique on the node; None: no runner."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    return SummaryFile(Path(folder) / f"{name}.json") if folder else None
