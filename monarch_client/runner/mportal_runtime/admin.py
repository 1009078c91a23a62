"""Starts Monarch's mesh admin in the driver, for the runner on this node to ask after the meshes.

It listens on 127.0.0.1 only. Nothing that goes wrong here may harm the driver, or hold it up.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable

FILE_VARIABLE = "MPORTAL_ADMINS_FILE"
# "0": no admin is started. For the user to set, in front of the driver's command.
SWITCH_VARIABLE = "MPORTAL_MESH_ADMIN"
_ADDRESS = "127.0.0.1:0"
# A driver that ends at once waits so long for an admin that is about to be there.
_LAST_WAIT_S = 5.0


class Admin:
    """The admin of this driver: Monarch takes one in a process, for all of its meshes."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        # It lives as long as somebody holds what it was started with.
        self._held: Any = None
        self._is_ended = False
        self._lock = threading.Lock()

    def start(self, meshes: Callable[[], dict[str, Any]]) -> None:
        """Start it, once, on a thread of its own, for what `meshes` gives there."""
        is_wanted = os.environ.get(FILE_VARIABLE) and os.environ.get(SWITCH_VARIABLE) != "0"
        if is_wanted and self._thread is None:
            self._thread = threading.Thread(target=self._start, args=(meshes,), daemon=True)
            self._thread.start()

    def end(self) -> None:
        """The meshes are about to be ended: what does not answer from now on is no loss."""
        with self._lock:
            self._is_ended = True
            if self._held is not None:
                _write([])
        if self._thread is not None:
            self._thread.join(_LAST_WAIT_S)

    def _start(self, meshes: Callable[[], dict[str, Any]]) -> None:
        try:
            url, job = _start_admin(meshes())
            with self._lock:
                self._held = job
                _write([] if self._is_ended else [url])
        except Exception as error:  # noqa: BLE001 - a driver works as well without
            # The driver may have been quicker with what it had to do.
            if not self._is_ended and "shut down" not in str(error):
                sys.stderr.write(f"mportal: the meshes are not watched: {error!r:.300}\n")


def _start_admin(meshes: dict[str, Any]) -> tuple[str, Any]:
    from monarch.job import JobState, JobTrait, MeshAdminConfig  # noqa: PLC0415

    class Attached(JobTrait):  # type: ignore[misc]  # monarch has no types
        """Meshes that are there already, as a job: only jobs have admins."""

        def _create(self, client_script: str | None) -> None:
            """Nothing to do."""

        def _state(self) -> Any:
            return JobState(meshes)

        def can_run(self, spec: Any) -> bool:
            return False

        def _kill(self) -> None:
            """Nothing to do: whoever has attached the meshes ends them."""

    told_programs = os.environ.get("MONARCH_ADMIN_URL")
    log = logging.getLogger(JobTrait.__module__)
    level = log.level
    try:
        # What such a job says of itself is nothing to the user, who has made none.
        log.setLevel(logging.WARNING)
        job = Attached().enable_admin(MeshAdminConfig(admin_addr=_ADDRESS))
        return str(job.state(cached_path=None).admin_url), job
    finally:
        log.setLevel(level)
        # Monarch tells it to all programs that the driver starts.
        if told_programs is None:
            os.environ.pop("MONARCH_ADMIN_URL", None)
        else:
            os.environ["MONARCH_ADMIN_URL"] = told_programs


def _write(urls: list[str]) -> None:
    path = Path(os.environ[FILE_VARIABLE])
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps({"urls": urls}), encoding="utf-8")
    new.replace(path)
