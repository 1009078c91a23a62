"""From a job's specification to the task that SkyPilot is given. Pure: no file, no network.

SkyPilot brings the machines and starts our runner on each; the user's own `setup` and `run` are the
runner's business (docs/explanation/skypilot.md says why).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.backends.base import LaunchRequest
from monarch_client.runner.boot import boot_script

# Keys of the specification that SkyPilot gets as they are written.
_AS_WRITTEN = ("volumes", "config", "event_callback")
_UPLOAD = "upload:"


def job_name_of(attempt_id: int) -> str:
    """What the attempt's job is called on its cluster: by it alone it is found again."""
    return f"mp-{attempt_id}"


def task_for(request: LaunchRequest, workdir: str) -> dict[str, Any]:
    """The task of one attempt; `workdir` is the staged folder that travels to every node."""
    task = described(request.spec)
    task.update(
        name=job_name_of(request.attempt_id),
        workdir=workdir,
        run=boot_script(request.attempt_id),
    )
    if request.secrets:
        task["secrets"] = dict(request.secrets)
    return task


def described(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a task that decides where it can run and what that costs."""
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
    return task


def is_upload(source: object) -> bool:
    """Whether it is a folder that was uploaded to the portal."""
    return isinstance(source, str) and source.startswith(_UPLOAD)
