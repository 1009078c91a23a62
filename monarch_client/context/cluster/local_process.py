"""A job on this machine: a shell with a process group, and the files of its output."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from monarch_client.context.cluster.base import JobInfo, JobStatus

GRACE_S = 2.0


class LocalProcess:
    """A script that runs, or has ended."""

    def __init__(self, job_id: str, script: str, env: Mapping[str, str], folder: Path) -> None:
        self._id = job_id
        self._outputs = folder / "stdout", folder / "stderr"
        self._stopped = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._end: datetime | None = None
        self._start = datetime.now(timezone.utc)
        stdout, stderr = self._outputs
        with stdout.open("wb") as out, stderr.open("wb") as errors:
            self._process = subprocess.Popen(
                ["bash", "-c", script],
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )
        name = f"end of {job_id}"
        threading.Thread(target=self._await_end, name=name, daemon=True).start()

    def info(self) -> JobInfo:
        """Return the job as lists show it."""
        with self._lock:
            return JobInfo(self._id, self._status(), self._start, self._start, self._end)

    def has_ended(self) -> bool:
        """Whether its processes have ended."""
        return self._ended.is_set()

    def logs(self) -> tuple[str, str]:
        """Return its output so far."""
        stdout, stderr = (file.read_text(errors="replace") for file in self._outputs)
        return stdout, stderr

    def stop(self) -> None:
        """End its processes: with SIGTERM, and after two seconds with SIGKILL."""
        with self._lock:
            if self._end is not None:
                return
            self._stopped = True
            self._signal(signal.SIGTERM)
        if not self._ended.wait(GRACE_S):
            with self._lock:
                if self._end is None:
                    self._signal(signal.SIGKILL)
            self._ended.wait()

    def _status(self) -> JobStatus:
        if self._end is None:
            return JobStatus.RUNNING
        if self._stopped:
            return JobStatus.STOPPED
        return JobStatus.FAILED if self._process.returncode else JobStatus.SUCCEEDED

    def _await_end(self) -> None:
        # The shell is reaped under the lock: until then its id belongs to no other process.
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            self._signal(signal.SIGKILL)  # What the script has left in the background.
            self._process.wait()
            self._end = datetime.now(timezone.utc)
        self._ended.set()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
