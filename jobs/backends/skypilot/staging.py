"""The folder that travels to the nodes of an attempt: the runner, attempt.json and the uploads.

SkyPilot brings a task's work directory to every node, at a launch and at the start of a job on a
cluster that is up already; file mounts would only come with a launch.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from jobs.backends.attempt_file import attempt_file, authority_for
from jobs.backends.base import LaunchRequest
from jobs.backends.private_files import make_directory, write_private
from jobs.backends.skypilot.asking import Sending
from jobs.backends.skypilot.task import job_name_of
from monarch_client.runner.bundle import build

UploadOpener = Callable[[str], AbstractContextManager[Path]]
GRACE_S = 10.0
# How long an ended attempt's runner waits for a portal that is away. Its machines cost money.
LINGER_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class StagingOptions:
    """The portal's settings for attempts on SkyPilot's clusters."""

    directory: Path
    carrier: str  # "push", "pull" or "auto"
    torchmonarch: str  # the version that is installed where a job needs one and has none


class Staging:
    """The staged folders of all clusters: `<directory>/<cluster>/mp-<attempt>/`."""

    def __init__(self, options: StagingOptions, open_upload: UploadOpener) -> None:
        self._options = options
        self._open_upload = open_upload

    def stage(self, request: LaunchRequest) -> Path:
        """Make the work directory for SkyPilot, whole or not at all, or return the existing one.

        Its certificate authority stays the attempt's own when a launch is repeated.
        """
        final = self._final(request.cluster_name, request.attempt_id)
        workdir = final.parent
        if final.exists():
            return workdir
        make_directory(self._options.directory, 0o700)
        make_directory(self._cluster(request.cluster_name), 0o700)
        make_directory(workdir, 0o700)
        # Beside the folder that travels, so that a draft which a killed process left does not.
        with tempfile.TemporaryDirectory(dir=self._cluster(request.cluster_name)) as scratch:
            draft = Path(scratch) / "draft"
            make_directory(draft, 0o700)
            self._fill(draft, request)
            _keep_first(draft, final)
        return workdir

    @property
    def only_prints(self) -> bool:
        """Whether runners are configured not to try to reach the portal."""
        return self._options.carrier == "pull"

    def sending(self, cluster_name: str, attempt_id: int) -> Sending:
        """Return the progress of the attempt's transfer to SkyPilot."""
        return Sending(self._cluster(cluster_name), job_name_of(attempt_id))

    def may_arrive(self, cluster_name: str) -> bool:
        """Whether an attempt of this cluster is on its way to SkyPilot."""
        locks = self._cluster(cluster_name).glob("*.lock")
        return any(Sending(lock.parent, lock.stem).may_arrive for lock in locks)

    def staged_at(self, cluster_name: str, attempt_id: int) -> float | None:
        """Return when the attempt was staged, as seconds since 1970; None if it is not."""
        try:
            return self._final(cluster_name, attempt_id).stat().st_mtime
        except FileNotFoundError:
            return None

    def remove(self, cluster_name: str) -> None:
        """Forget all that was staged for a cluster; it holds keys of its attempts."""
        shutil.rmtree(self._cluster(cluster_name), ignore_errors=True)

    def _fill(self, draft: Path, request: LaunchRequest) -> None:
        content = attempt_file(
            request,
            authority=authority_for(request),
            addresses=None,
            grace_s=GRACE_S,
        )
        content["carrier"] = self._options.carrier
        content["torchmonarch"] = self._options.torchmonarch
        # Their names: by them the runner sees whether what `setup` is given has changed.
        content["secrets"] = sorted(request.secrets)
        content["linger_s"] = LINGER_S
        content["uploads"] = []
        make_directory(draft / "uploads", 0o700)
        for number, upload in enumerate(request.uploads):
            archive = f"uploads/{number}.tar.gz"
            with self._open_upload(upload.reference) as source:
                shutil.copyfile(source, draft / archive)
            digest = upload.reference.removeprefix("upload:")
            entry = {"archive": archive, "target": upload.target, "sha256": digest}
            content["uploads"].append(entry)
        build(draft / "runner.pyz")
        write_private(draft / "attempt.json", content)

    def _cluster(self, cluster_name: str) -> Path:
        return self._options.directory / cluster_name

    def _final(self, cluster_name: str, attempt_id: int) -> Path:
        # A folder of its own: what SkyPilot brings to the nodes holds one attempt, under its name.
        name = job_name_of(attempt_id)
        return self._cluster(cluster_name) / f"{name}.d" / name


def _keep_first(draft: Path, final: Path) -> None:
    try:
        draft.rename(final)
    except OSError as error:
        # Another process was faster: its folder is the attempt's.
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
