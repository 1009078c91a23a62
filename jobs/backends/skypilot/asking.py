"""Handing an attempt to SkyPilot: a thread sends it, because a large folder takes minutes to send.

A lock on a file shows every process of the portal that it is being sent, for exactly as long as
the sender lives. What came of it is in a file beside it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobs.backends.file_locks import is_held
from jobs.backends.private_files import write_private
from monarch_client.crash_points import reach
from monarch_client.skypilot.caller import SkyCaller
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError

log = logging.getLogger(__name__)

# The caller gives a call up before that.
_LONGEST_S = 1000.0
JUST_S = 0.5
# The sender touches its lock so often; one that has not for so long is asleep.
TOUCH_S = 3.0
ASLEEP_S = 15.0
# SkyPilot may have accepted it: its record of the cluster shows that.
_UNCERTAIN = frozenset({"server_away", "interrupted"})


class Sending:
    """The sending of one attempt. `folder` is the cluster's own, and goes with it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._lock = folder / f"{name}.lock"
        self._outcome = folder / f"{name}.outcome"

    @property
    def is_under_way(self) -> bool:
        """Whether some living process is at it."""
        return is_held(self._lock)

    @property
    def may_arrive(self) -> bool:
        """Whether SkyPilot may get the attempt soon. A sender that sleeps is not waited for."""
        if self.was_just_taken:
            return True
        try:
            age_s = time.time() - self._lock.stat().st_mtime
        except FileNotFoundError:
            return False
        return age_s < ASLEEP_S and self.is_under_way

    @property
    def was_just_taken(self) -> bool:
        """Whether SkyPilot took it so recently that older answers may not know of it."""
        try:
            age_s = time.time() - self._outcome.stat().st_mtime
        except FileNotFoundError:
            return False
        return age_s < JUST_S and self.request_id is not None

    @property
    def request_id(self) -> str | None:
        """SkyPilot's number of it; None before it is known. It means nothing once SkyPilot ends."""
        return self._read().get("request_id")

    @property
    def refusal(self) -> SkyPilotError | None:
        """Return why SkyPilot refused the attempt, if it did."""
        refusal = self._read().get("refusal")
        return None if refusal is None else SkyPilotError.from_dict(refusal)

    def begin(self, caller: SkyCaller, verb: str, args: dict[str, Any]) -> None:
        """Send it in the background; silent where another process is at it."""
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return
        with suppress(FileNotFoundError):
            self._outcome.unlink()
        thread = threading.Thread(
            target=self._send, args=(lock, caller, verb, args), name="send", daemon=True
        )
        thread.start()

    def _send(self, lock: int, caller: SkyCaller, verb: str, args: dict[str, Any]) -> None:
        try:
            request_id = _answer(lock, caller, verb, args)
            reach("launch.sent")
            self._write({"request_id": request_id})
        except SkyPilotError as error:
            context = {"action": "skypilot_send", "cluster": args["cluster_name"]}
            log.warning("not sent: %s", error, extra=context)
            if error.kind not in _UNCERTAIN:
                self._write({"refusal": error.to_dict()})
        except StillBusyError:
            log.warning("no answer", extra={"action": "skypilot_send"})
        except FileNotFoundError:
            # The cluster was taken down meanwhile, and its folder with it.
            log.info("sent in vain", extra={"action": "skypilot_send"})
        finally:
            os.close(lock)

    def _read(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._outcome.read_text())
        except FileNotFoundError:
            return {}
        return content

    def _write(self, content: dict[str, Any]) -> None:
        write_private(self._outcome, content)


def _answer(lock: int, caller: SkyCaller, verb: str, args: dict[str, Any]) -> Any:
    """Return the call's result, with the lock touched now and then for as long as we are awake."""
    until = time.monotonic() + _LONGEST_S
    while True:
        os.utime(lock)
        try:
            return caller.call(verb, args, TOUCH_S)
        except StillBusyError:
            if time.monotonic() > until:
                raise
