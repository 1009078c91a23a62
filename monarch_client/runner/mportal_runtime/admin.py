"""Starts Monarch's mesh admin in the driver, for the runner on this node to ask after the meshes.

It listens on 127.0.0.1 only. Nothing that goes wrong here may harm the driver, or hold it up.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable

FILE_VARIABLE = "MPORTAL_ADMINS_FILE"
# "1": an admin is started. For the user to set, in front of the driver's command. Not by itself: a
# driver that ends while Monarch starts one may be ended by SIGABRT instead.
SWITCH_VARIABLE = "MPORTAL_MESH_ADMIN"
_ADDRESS = "127.0.0.1:0"
# Monarch's admin knows the meshes of its start, and a process can have no second one: it begins
# when the driver has all of its meshes, or has asked for no other one for so long.
_SETTLE_S = 20.0
_STEP_S = 0.25
# A driver that ends at once waits so long, at most, for an admin that is about to be there.
LAST_WAIT_S = 2.0


class Admin:
    """The admin of this driver: Monarch takes one in a process, for all of its meshes."""

    def __init__(self) -> None:
        self._file = Path()
        self._is_begun = False
        self._thread: threading.Thread | None = None
        # It lives as long as somebody holds what it was started with.
        self._held: Any = None
        self._ending = threading.Event()
        self._lock = threading.Lock()

    def start(self, meshes: Callable[[], dict[str, Any]], most: Callable[[], int]) -> None:
        """Start it, once, on a thread of its own: for what `meshes` gives, when it settles.

        That is when there are `most`, or when they have become no more for a while.
        """
        with self._lock:
            if self._is_begun:
                return
            self._is_begun = True
        try:
            self._begin(meshes, most)
        except (KeyboardInterrupt, SystemExit):
            raise  # meant for the driver
        except BaseException as error:  # noqa: BLE001 - Monarch's panics are no Exceptions
            _complain(error)

    def end(self, wait_s: float) -> None:
        """What does not answer from now on is no loss. Waits so long for a start under way."""
        self._ending.set()
        with contextlib.suppress(Exception):
            if self._thread is not None:
                self._thread.join(wait_s)
        with contextlib.suppress(Exception), self._lock:
            if self._held is not None:
                _write(self._file, [])

    def _begin(self, meshes: Callable[[], dict[str, Any]], most: Callable[[], int]) -> None:
        file = os.environ.get(FILE_VARIABLE)
        if not file or os.environ.get(SWITCH_VARIABLE) != "1":
            return
        # Not on the thread: two that import at once may see each other's modules half made.
        import monarch.job  # noqa: F401, PLC0415

        self._file = Path(file)
        wanted = most()
        self._thread = threading.Thread(
            target=self._start, args=(meshes, wanted), daemon=True, name="mportal-admin"
        )
        self._thread.start()

    def _start(self, meshes: Callable[[], dict[str, Any]], wanted: int) -> None:
        try:
            self._settle(meshes, wanted)
            if self._ending.is_set():
                return
            # It tells the runner, too, that what Monarch is about to print is ours.
            _write(self._file, [])
            url, job = _start_admin(meshes())
            with self._lock:
                self._held = job
                _write(self._file, [] if self._ending.is_set() else [url])
        except RuntimeError:
            # So Monarch tells that the driver was quicker: it has shut its meshes down meanwhile,
            # or has an admin of its own. It works as well without ours.
            return
        except BaseException as error:  # noqa: BLE001 - a driver works as well without
            if not self._ending.is_set():
                _complain(error)

    def _settle(self, meshes: Callable[[], dict[str, Any]], wanted: int) -> None:
        known, until = 0, 0.0
        while not self._ending.is_set() and len(meshes()) < wanted:
            if len(meshes()) > known:
                known, until = len(meshes()), time.monotonic() + _SETTLE_S
            elif time.monotonic() >= until:
                return
            self._ending.wait(_STEP_S)


def _complain(error: BaseException) -> None:
    # A program may have closed its stderr, or have none.
    with contextlib.suppress(Exception):
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


def _write(path: Path, urls: list[str]) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps({"urls": urls}), encoding="utf-8")
    new.replace(path)
