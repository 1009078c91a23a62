"""Lays out a node before its runner starts: uploads, Python, attempt.json, owner."""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.backends.attempt_file import attempt_file
from jobs.backends.base import LaunchRequest
from jobs.backends.local.folders import ClusterFolder, NodeFolder, Record, give_to
from jobs.backends.local.gpus import gpu_environment, nvml_environment
from jobs.backends.local.isolation import NodeStart
from jobs.backends.local.ports import remarks_on
from jobs.backends.local.processes import MARK
from jobs.backends.local.python import PortalPython, make_environment, search_path
from jobs.backends.local.slots import Slot
from jobs.backends.private_files import make_directory, remove_tree, write_private
from jobs.errors import BackendError
from monarch_client import crash_points
from monarch_client.errors import ArchiveError
from monarch_client.skypilot.trust import Authority
from monarch_client.sync.archive import unpack

# Unix sockets below TMPDIR must fit in 107 bytes; Python's own names take some 40 of them.
LONGEST_TMP = 60

UploadOpener = Callable[[str], AbstractContextManager[Path]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The parameters by which the nodes of one cluster are laid out."""

    folder: ClusterFolder
    request: LaunchRequest
    record: Record
    slot: Slot
    uid: int | None
    portal_file: Path | None
    grace_s: float

    @property
    def addresses(self) -> list[str]:
        """The nodes' addresses, by rank."""
        return [self.slot.address(rank) for rank in range(self.record.num_nodes)]


def lay_out_node(
    layout: Layout, rank: int, python: PortalPython, open_upload: UploadOpener
) -> None:
    """Make node `rank`'s directory, whole or not at all. Silent if it is there."""
    final = layout.folder.node(rank)
    if final.path.exists():
        return
    draft = NodeFolder(layout.folder.path / f"new-{rank}")
    remove_tree(draft.path)
    for directory in (draft.path, draft.workdir, draft.state, draft.tmp):
        make_directory(directory, 0o700)
    for upload in layout.request.uploads:
        with open_upload(upload.reference) as archive:
            _unpack(archive, draft, upload.target)
    make_environment(draft.python, python)
    write_private(draft.attempt_file, attempt_config(layout))
    if layout.uid is not None:
        give_to(draft.path, layout.uid)
    draft.path.rename(final.path)


def attempt_config(layout: Layout) -> dict[str, Any]:
    """Build the content of attempt.json on this machine."""
    request, record = layout.request, layout.record
    content = attempt_file(
        request,
        authority=Authority(record.ca_cert, record.ca_key),
        addresses=layout.addresses,
        grace_s=layout.grace_s,
    )
    content["portal_file"] = str(layout.portal_file) if layout.portal_file else None
    content["envs"].update(request.secrets)
    if record.ports is not None:
        content["port"], content["hub_port"], content["node_port"] = record.ports
        content["remarks"] = remarks_on(request.spec, record.ports)
    return content


def node_start(layout: Layout, rank: int, python: PortalPython) -> NodeStart:
    """Describe the start of the runner of node `rank`."""
    node = layout.folder.node(rank)
    return NodeStart(
        rank=rank,
        command=[
            str(node.python / "bin" / "python3"),
            # The runner needs nothing but the standard library: without site it starts sooner.
            *("-I", "-S", layout.record.runner),
            *("--config", str(node.attempt_file)),
            *("--rank", str(rank)),
            *("--root", str(node.path)),
        ],
        environment=_environment(layout, rank, python),
        cwd=str(node.workdir),
        tmp=str(node.tmp),
        started=str(layout.folder.started_file(rank)),
        output=str(layout.folder.output_file(rank)),
    )


def short_tmp(folder: ClusterFolder, rank: int) -> Path:
    """Return the link to a node's temporary files that is used if their own path is too long."""
    return Path(tempfile.gettempdir()) / f"{folder.name}.{rank}"


def link_tmp(layout: Layout, rank: int) -> None:
    """Make that link, where the node has no /tmp of its own and needs one.

    FileExistsError: another user has made another file of that name, as any user may there.
    """
    link, tmp = short_tmp(layout.folder, rank), layout.folder.node(rank).tmp
    is_needed = layout.uid is None and len(str(tmp)) > LONGEST_TMP
    if is_needed and not (link.is_symlink() and link.lstat().st_uid == os.geteuid()):
        link.symlink_to(tmp)


def unlink_tmp(folder: ClusterFolder, rank: int) -> None:
    """Remove the link, if it is there and ours."""
    link = short_tmp(folder, rank)
    if link.is_symlink() and link.readlink() == folder.node(rank).tmp:
        link.unlink(missing_ok=True)


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return f"user{os.getuid()}"


def _environment(layout: Layout, rank: int, python: PortalPython) -> dict[str, str]:
    """Build the whole environment of a runner: none of the portal's own variables get there."""
    node = layout.folder.node(rank)
    user = _own_name() if layout.uid is None else f"job{layout.uid}"
    return {
        "PATH": search_path(node.python, python),
        "HOME": str(node.path),
        "USER": user,
        "LOGNAME": user,
        "LANG": "C.UTF-8",
        "TMPDIR": _tmp_directory(layout, rank),
        "VIRTUAL_ENV": str(node.python),
        **gpu_environment(layout.record.gpus[rank]),
        **nvml_environment(),
        MARK: layout.folder.name,
        **crash_points.environment_of(rank),
    }


def _tmp_directory(layout: Layout, rank: int) -> str:
    if layout.uid is not None:
        return "/tmp"  # noqa: S108 - of its own, see local_launcher
    tmp = layout.folder.node(rank).tmp
    return str(tmp if len(str(tmp)) <= LONGEST_TMP else short_tmp(layout.folder, rank))


def _unpack(archive: Path, node: NodeFolder, target: str) -> None:
    place = node.path_for(target)
    if place is None:
        raise BackendError(f"Nothing can be uploaded to {target} on a local node.")
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        unpack(archive, place)
    except ArchiveError as error:
        raise BackendError(f"The folder for {target} cannot be unpacked: {error}") from error
