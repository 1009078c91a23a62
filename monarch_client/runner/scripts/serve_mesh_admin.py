"""Serve Monarch's mesh admin. Run as a script: `serve_mesh_admin.py PLAN FILE WATCH`.

It attaches to the workers in PLAN, as their driver does, and starts nothing on them. It listens on
127.0.0.1 only, and writes its address to FILE. Its end does not affect driver and workers. It ends
by itself when WATCH, with which a driver requests it, has been missing for a while.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

# An admin ends soon after a killed runner.
_LOOK_S = 2.0
# Another driver often follows one that ends.
_UNWANTED_S = 30.0
# Beside the time to attach: after that Monarch hangs.
_START_S = 60.0
# Measured: two for each host, and 22.
_FILES_A_HOST, _FILES_BESIDES = 3, 200
# Without a connection Monarch writes 30 MB a second to a log of its own.
_MOST_WRITTEN = 64 * 1024 * 1024


def main(plan_file: str, file: str, watch_file: str) -> None:
    """Serve while the process that started this one lives, and a driver requests the admin."""
    runner = os.getppid()
    _lower_priority()
    plan = json.loads(Path(plan_file).read_text(encoding="utf-8"))
    _limit(sum(len(workers) for workers in plan["meshes"].values()))
    limit_s = plan["attach_timeout_s"] * len(plan["meshes"]) + _START_S
    hangs = threading.Timer(limit_s, _give_up, [limit_s])
    hangs.daemon = True
    hangs.start()
    # The reference keeps the admin alive.
    url, _held = _start(plan)
    hangs.cancel()
    new = Path(file + ".new")
    new.write_text(json.dumps({"urls": [url]}), encoding="utf-8")
    new.replace(file)
    watch, wanted_at = Path(watch_file), time.monotonic()
    while os.getppid() == runner and time.monotonic() - wanted_at < _UNWANTED_S:
        time.sleep(_LOOK_S)
        if watch.exists():
            wanted_at = time.monotonic()


def _start(plan: dict[str, Any]) -> tuple[str, Any]:
    from monarch import actor  # noqa: PLC0415
    from monarch.job import MeshAdminConfig  # noqa: PLC0415

    # Faults are for the driver.
    actor.unhandled_fault_hook = lambda _failure: None
    actor.enable_transport(plan["transport"])
    attached = {
        name: actor.attach_to_workers(
            ca="trust_all_connections",
            workers=[worker["address"] for worker in workers],
            name="watched_" + name.replace("-", "_"),
        )
        for name, workers in plan["meshes"].items()
    }
    # Leave out meshes that the driver has shut down.
    meshes = {name: mesh for name, mesh in attached.items() if _is_there(mesh, plan)}
    if not meshes:
        raise TimeoutError("no worker answers")
    job = _job_of(meshes).enable_admin(MeshAdminConfig(admin_addr="127.0.0.1:0"))
    return str(job.state(cached_path=None).admin_url), job


def _is_there(mesh: Any, plan: dict[str, Any]) -> bool:
    try:
        mesh.initialized.get(timeout=plan["attach_timeout_s"])
    except TimeoutError:
        return False
    return True


def _job_of(meshes: dict[str, Any]) -> Any:
    from monarch.job import JobState, JobTrait  # noqa: PLC0415

    class Attached(JobTrait):  # type: ignore[misc]  # monarch has no types
        """A job of existing meshes, since only jobs have admins."""

        def _create(self, client_script: str | None) -> None:
            """Create nothing."""

        def _state(self) -> Any:
            return JobState(meshes)

        def can_run(self, spec: Any) -> bool:
            return False

        def _kill(self) -> None:
            """Kill nothing: the meshes belong to the driver."""

    return Attached()


def _lower_priority() -> None:
    """Lower the priority of this process: the job needs memory and processors more."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError):
        os.nice(5)


def _limit(hosts: int) -> None:
    """Raise the limit of open files; RuntimeError if it is too low, which makes Monarch loop."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = hosts * _FILES_A_HOST + _FILES_BESIDES
    if most != resource.RLIM_INFINITY and most < needed:
        raise RuntimeError(f"it may open {most} files and needs {needed} for {hosts} hosts")
    soft = needed if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_WRITTEN, _MOST_WRITTEN))


def _give_up(limit_s: float) -> None:
    sys.stderr.write(f"Monarch started no admin in {limit_s:.0f} s\n")
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    code = 1
    try:
        main(*sys.argv[1:4])
        code = 0
    except BaseException as error:  # noqa: BLE001 - Monarch's panics are no Exceptions
        sys.stderr.write(f"{error!r:.300}\n")
        sys.stderr.flush()
    # Not as Python ends: Monarch's threads may not live through that, and nothing is left to do.
    os._exit(code)
