"""Monarch's mesh admin in a process apart, as a script: `serve_mesh_admin.py PLAN FILE WATCH`.

It attaches to the workers in PLAN, as their driver does, and starts nothing on them. FILE then says
where it listens, on 127.0.0.1 only. Whatever happens to it, driver and workers go on. It ends by
itself when WATCH, by which a driver asks for it, has been gone for a while.
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

# So that a runner which was killed leaves none.
_LOOK_S = 2.0
# A driver that ends has often a next one behind it.
_UNWANTED_S = 30.0
# Beside the time to attach: after that Monarch hangs.
_START_S = 60.0
# Measured: two for each host, and 22.
_FILES_A_HOST, _FILES_BESIDES = 3, 200
# Where Monarch reaches nobody it writes 30 MB a second into a log of its own.
_MOST_WRITTEN = 64 * 1024 * 1024


def main(plan_file: str, file: str, watch_file: str) -> None:
    """Serve for as long as the process that started this one lives, and somebody wants it."""
    runner = os.getppid()
    _be_the_first_to_go()
    plan = json.loads(Path(plan_file).read_text(encoding="utf-8"))
    _limit(sum(len(workers) for workers in plan["meshes"].values()))
    limit_s = plan["attach_timeout_s"] * len(plan["meshes"]) + _START_S
    hangs = threading.Timer(limit_s, _give_up, [limit_s])
    hangs.daemon = True
    hangs.start()
    # What is held here keeps the admin alive.
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
    # One that the driver has shut down is nothing to the others.
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
        """Meshes that are there already, as a job: only jobs have admins."""

        def _create(self, client_script: str | None) -> None:
            """Nothing to do."""

        def _state(self) -> Any:
            return JobState(meshes)

        def can_run(self, spec: Any) -> bool:
            return False

        def _kill(self) -> None:
            """Nothing to do: the meshes are the driver's."""

    return Attached()


def _be_the_first_to_go() -> None:
    """Where memory or processors are short, the job needs them more."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError):
        os.nice(5)


def _limit(hosts: int) -> None:
    """Refuse what would end in a loop: without a file for each host Monarch tries on and on."""
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
