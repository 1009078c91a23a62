"""The task of a SkyPilotJob: the portal's runner, configured to run without a portal."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from monarch_client.runner.base.config import FORMAT
from monarch_client.runner.boot import boot_script
from monarch_client.runner.bundle import build
from monarch_client.runner.programs.hidden_values import hidden
from monarch_client.runner.vocabulary import carriers
from monarch_client.skypilot.job_spec import JobSpec
from monarch_client.skypilot.trust import Authority, new_authority
from monarch_client.sync.copying import copy_for_skypilot
from monarch_client.sync.packing import pack

# The head ends the workers when no program has been connected to them for so long, unless they are
# to be kept for minutes.
CLIENT_GONE_S = 120
MINUTE_S = 60
# The first one may take a while: SkyPilot is slow to report that a job runs.
FIRST_CLIENT_S = 900
_WATCH = Path(__file__).with_name("client_watch.py")


@dataclass(frozen=True)
class Attempt:
    """One start of a job's workers: its name, and who belongs to it."""

    id: int
    token: str
    authority: Authority

    @classmethod
    def new(cls, cluster: str) -> Attempt:
        """Make an attempt with a random number, long enough to be unique."""
        return cls(secrets.randbits(48) + 1, secrets.token_hex(16), new_authority(cluster))

    @property
    def job_name(self) -> str:
        """The name of SkyPilot's job."""
        return f"mp-{self.id}"


def stage(spec: JobSpec, attempt: Attempt, folder: Path) -> dict[str, Any]:
    """Fill `folder` with what travels; the SkyPilot task that brings it to every node.

    ArchiveError: `workdir` or a folder of `file_mounts` has something that cannot travel.
    """
    brought = folder / "workdir" / attempt.job_name
    brought.parent.mkdir()
    brought.mkdir(mode=0o700)
    content = _attempt_file(spec, attempt)
    if spec.workdir:
        packed = pack(Path(spec.workdir), brought / "workdir.tar.gz")
        upload = {"archive": packed.path.name, "target": "workdir", "sha256": packed.digest}
        content["uploads"] = [upload]
    build(brought / "runner.pyz")
    fd = os.open(brought / "attempt.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump(content, file)
    task: dict[str, Any] = {
        "name": attempt.job_name,
        "num_nodes": spec.num_nodes,
        "resources": spec.resources,
        "workdir": str(brought.parent),
        "run": boot_script(attempt.id),
    }
    if spec.file_mounts:
        task["file_mounts"] = _stage_mounts(spec.file_mounts, folder / "mounts")
    if spec.secrets:
        task["secrets"] = hidden(spec.secrets, attempt.token)
    return task


def _stage_mounts(mounts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Put copies in place of local folders: SkyPilot's own rules would let more files travel."""
    folder.mkdir()
    return {
        target: _staged(source, folder / str(number))
        for number, (target, source) in enumerate(mounts.items())
    }


def _staged(source: Any, folder: Path) -> Any:
    """Return the source of a mount with a copy in `folder` for each local folder it names."""
    if isinstance(source, Mapping) and "source" in source:
        # A bucket that SkyPilot fills.
        return {**source, "source": _staged(source["source"], folder)}
    if isinstance(source, list):
        folder.mkdir()
        # Each gets its own name in the bucket.
        return [_staged(each, folder / str(n)) for n, each in enumerate(source)]
    path = Path(source).expanduser() if isinstance(source, str) and "://" not in source else None
    if path is None or not path.is_dir():
        return source
    folder.mkdir()
    copy = folder / (path.absolute().name or "folder")
    copy_for_skypilot(path, copy)
    return str(copy)


def _attempt_file(spec: JobSpec, attempt: Attempt) -> dict[str, Any]:
    """Return the content of attempt.json: see `monarch_client.runner.base.config`."""
    authority = attempt.authority
    return {
        "format": FORMAT,
        "attempt_id": attempt.id,
        "job_id": 0,
        "attempt_number": 1,
        "project": "",
        "job_name": attempt.job_name,
        # With no portal only the other runners read it.
        "token": attempt.token,
        "carrier": carriers.NONE,
        "nodes": None,
        "setup": spec.setup_commands or None,
        "run": _wait_for_clients(spec),
        "envs": spec.envs,
        "secrets": sorted(spec.secrets),
        "meshes": spec.meshes,
        "port": spec.monarch_port,
        "hub_port": spec.monarch_port + 1,
        "node_port": spec.monarch_port + 2,
        "tls": {"ca_cert": authority.certificate, "ca_key": authority.key},
        "python": spec.python_exe,
        "torchmonarch": _monarch_version(),
        "timeouts": {"setup_s": spec.ready_timeout_s},
    }


def _wait_for_clients(spec: JobSpec) -> str:
    """Return the head's `run`, which waits until no program is connected to the workers."""
    minutes = spec.idle_minutes_to_autostop
    gone_s = CLIENT_GONE_S if minutes is None else minutes * MINUTE_S
    # A first one that came and went between two looks was not seen.
    first_s = max(FIRST_CLIENT_S, gone_s)
    arguments = f"{spec.monarch_port} {first_s} {gone_s}"
    # Read from a pipe: the interpreter has no file of ours to run.
    return f"exec {spec.python_exe} -I - {arguments} <<'END'\n{_WATCH.read_text()}END\n"


def _monarch_version() -> str:
    """Return this program's version of Monarch, which nodes without Monarch install."""
    try:
        return metadata.version("torchmonarch")
    except metadata.PackageNotFoundError:
        return ""
