"""Conversion of a job's specification to SkyPilot's task. Pure: no file, no network.

SkyPilot brings the machines and starts our runner on each; the user's own `setup` and `run` are the
runner's business (docs/explanation/skypilot.md says why).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jobs.backends.base import LaunchRequest
from jobs.backends.skypilot.avoiding import config_avoiding
from jobs.errors import BackendError
from monarch_client.runner.boot import boot_script
from monarch_client.runner.programs.hidden_values import hidden
from monarch_client.spec.locations import SourceKind, kind_of_source

# Keys of the specification that SkyPilot gets as they are written.
_AS_WRITTEN = ("volumes", "config", "event_callback")
_UPLOAD = "upload:"


def job_name_of(attempt_id: int) -> str:
    """Return the name of the attempt's job on its cluster: by it alone it is found again."""
    return f"mp-{attempt_id}"


def task_for(request: LaunchRequest, workdir: str) -> dict[str, Any]:
    """Build the task of one attempt; `workdir` is the staged folder that travels to every node."""
    task = described(request.spec)
    if config := config_avoiding(request.spec, request.avoid):
        task["config"] = config
    task.update(
        name=job_name_of(request.attempt_id),
        workdir=workdir,
        run=boot_script(request.attempt_id),
    )
    if request.secrets:
        task["secrets"] = hidden(request.secrets, request.token)
    return task


def described(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a task that decides where it can run and what that costs.

    BackendError: SkyPilot would take something in it for files of the portal's host.
    """
    task: dict[str, Any] = {
        "num_nodes": int(spec.get("num_nodes") or 1),
        "resources": dict(spec.get("resources") or {}),
        "run": "true",
    }
    mounts = {
        target: source
        for target, source in (spec.get("file_mounts") or {}).items()
        if not is_upload(source)
    }
    if mounts:
        task["file_mounts"] = mounts
    for key in _AS_WRITTEN:
        if spec.get(key):
            task[key] = spec[key]
    _refuse_files_of_the_host(task)
    return task


def _refuse_files_of_the_host(task: Mapping[str, Any]) -> None:
    """Refuse files of the portal's host in a specification that older rules accepted."""
    for target, source in (task.get("file_mounts") or {}).items():
        found = source.get("source") if isinstance(source, Mapping) else source
        if found is not None and not _is_bucket(found):
            raise BackendError(f"file_mounts.{target} is neither an upload nor a bucket.")
    # SkyPilot fills values of secrets into the text of these before it reads what that says.
    if "$" in json.dumps([task.get("file_mounts"), task.get("volumes")]):
        raise BackendError("file_mounts and volumes are taken as they are written: without any $.")


def _is_bucket(source: object) -> bool:
    """Whether it is one alone: of several SkyPilot takes each for a path."""
    return isinstance(source, str) and kind_of_source(source) is SourceKind.BUCKET


def is_upload(source: object) -> bool:
    """Whether it is a folder that was uploaded to the portal."""
    return isinstance(source, str) and source.startswith(_UPLOAD)
