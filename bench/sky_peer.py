"""Bare SkyPilot as the peer: the task that the portal generated, handed over without the portal.

The same server, the same work directory but for the attempt's number, and frames that are printed,
as there is no portal that would take them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import say
from jobs.backends.skypilot.task import described, job_name_of
from jobs.policies.idle import BACKSTOP_MARGIN_MINUTES
from monarch_client.runner.boot import boot_script
from monarch_client.skypilot.connection import CallerOptions

SCRIPT = Path(__file__).with_name("bare_sky.py")
# Written by the job itself, on whichever node: the rig's nodes share this folder and one clock.
FIRST_LINE = Path("/run/rig/first-line")
LIMIT_S = 600.0
LOOK_S = 0.02
ENDED = frozenset({"SUCCEEDED", "FAILED", "FAILED_SETUP", "FAILED_DRIVER", "CANCELLED"})
# No attempt of the portal's has such a number.
FIRST_NUMBER = 900_000


class BareSky:
    """SkyPilot's client in a process of its own, which has imported it."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._number = FIRST_NUMBER
        self._model: Path | None = None
        self._spec: Mapping[str, Any] = {}

    def learn(self, staged: Path, spec: Mapping[str, Any]) -> None:
        """Keep a copy of what the portal staged for a job of `spec`."""
        if self._model is None:
            self._model = self._folder / "model"
            shutil.copytree(staged, self._model)
            self._spec = spec

    def start(self, call: str, cluster: str) -> dict[str, float]:
        """Run `launch` or `exec` on the task; return the times of the call and of its first line.

        Returns once the job has ended and its cluster is as it was before an `exec`.
        """
        FIRST_LINE.unlink(missing_ok=True)
        options = {"idle_minutes_to_autostop": BACKSTOP_MARGIN_MINUTES, "down": True}
        answer = self._ask(call=call, cluster=cluster, task=self._task(), options=options)
        line_at = self._first_line()
        job_id = self._ask(call="wait", request_id=answer["request_id"])["job_id"]
        ended = self._until_ended(cluster, job_id)
        if ended != "SUCCEEDED":
            raise RuntimeError(f"the bare job {job_id} on {cluster} has {ended}")
        return {"called": answer["called_at"], "line": line_at}

    def down(self, cluster: str) -> None:
        """Terminate the cluster and wait until it no longer exists."""
        self._ask(call="down", cluster=cluster)

    def _task(self) -> dict[str, Any]:
        """Return the task that the portal would make of the same job, on a folder of its own."""
        if self._model is None:
            raise RuntimeError("nothing was staged yet")
        self._number += 1
        name = job_name_of(self._number)
        workdir = self._folder / f"{name}.d"
        shutil.copytree(self._model, workdir / name)
        file = workdir / name / "attempt.json"
        content = json.loads(file.read_text())
        file.write_text(json.dumps({**content, "attempt_id": self._number, "carrier": "pull"}))
        run = boot_script(self._number)
        return {**described(self._spec), "name": name, "workdir": str(workdir), "run": run}

    def _first_line(self) -> float:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if FIRST_LINE.exists() and (text := FIRST_LINE.read_text()).endswith("\n"):
                return float(text)
            time.sleep(LOOK_S)
        raise TimeoutError("the bare job has no first line")

    def _until_ended(self, cluster: str, job_id: int) -> str:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            status = self._ask(call="job_status", cluster=cluster, job_id=job_id)["status"]
            if status in ENDED:
                return str(status)
            time.sleep(1)
        raise TimeoutError(f"the bare job {job_id} on {cluster} does not end")

    def _ask(self, **request: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"SkyPilot's client ended during {request['call']}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def running(server: CallerOptions, folder: Path) -> Iterator[BareSky]:
    """Start the client of one server; `folder` is for its home and its work directories."""
    home = folder / "bare-home"
    home.mkdir(parents=True)
    environment = CallerOptions(home, server.endpoint, server.token).environment({"PATH": "/bin"})
    with (folder / "bare-sky.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            cwd=home,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield BareSky(process, folder)
        except RuntimeError:
            say((folder / "bare-sky.log").read_text()[-4000:])
            raise
        finally:
            process.kill()
            process.wait()
