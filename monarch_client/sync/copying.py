"""Copy the files of a folder that travel, for SkyPilot, which has other rules."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from monarch_client.errors import ArchiveError
from monarch_client.sync.archive_rules import Kind, Limits
from monarch_client.sync.ignore import SKY_FILE
from monarch_client.sync.selection import Entry, select

# Only the portal's uploads are limited.
_NO_LIMITS = Limits(most_members=10**9, most_bytes=10**18)


def copy_for_skypilot(folder: Path, target: Path) -> None:
    """Copy the files of `folder` that travel into the new folder `target`, for SkyPilot to upload.

    Files are hard links where they can be. Errors are those of `select`, and ArchiveError for a
    file that cannot be read.
    """
    target.mkdir()
    selection = select(folder, _NO_LIMITS)
    try:
        for entry in selection.entries:
            _copy(entry, folder / entry.path, target / entry.path)
    except OSError as error:
        raise ArchiveError(f"A file of {folder} cannot be copied: {error}.") from error
    # An empty .skyignore keeps SkyPilot from reading any other ignore file.
    (target / SKY_FILE).unlink(missing_ok=True)
    (target / SKY_FILE).touch()


def _copy(entry: Entry, source: Path, target: Path) -> None:
    if entry.kind is Kind.FOLDER:
        target.mkdir()
    elif entry.kind is Kind.LINK:
        target.symlink_to(entry.link_target)
    else:
        try:
            os.link(source, target)
        except OSError:  # another file system, or another owner
            shutil.copy2(source, target)
