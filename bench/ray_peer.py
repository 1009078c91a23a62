"""Ray as the peer: an environment of its own, a head on loopback, `ray job submit -- echo hi`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.measure import say
from monarch_portal.embedded.memory import with_descendants

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "monarch-portal" / "bench"
PACKAGE = "ray[default]"
START_LIMIT_S = 120
JOB_LIMIT_S = 120
PROBE_LIMIT_S = 300


class Ray:
    """One running head node."""

    def __init__(self, environment: Path, address: str, variables: dict[str, str]) -> None:
        self.environment = environment
        self.address = address
        self.variables = variables

    def version(self) -> str:
        """Return the version, such as `ray 2.60.0`."""
        answer = subprocess.run(
            [self.environment / "bin" / "ray", "--version"],
            check=True,
            capture_output=True,
            text=True,
            env=self.variables,
        )
        return answer.stdout.strip().replace(", version", "")

    def seconds_to_first_line(self) -> float:
        """Measure from the start of `ray job submit` to the line `hi` on its output."""
        started = time.monotonic()
        with subprocess.Popen(
            [self.environment / "bin" / "ray", "job", "submit", "--", "echo", "hi"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.variables,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip() == "hi":
                    seen = time.monotonic()
                    process.communicate(timeout=JOB_LIMIT_S)
                    return seen - started
        raise RuntimeError("ray job submit ended without the line 'hi'")


def environment() -> Path:
    """Return the peer's virtual environment, which is made on first use."""
    path = CACHE / "ray"
    ready = path / ".ready-with-numpy"
    if not ready.exists():
        say(f"installing {PACKAGE} into {path} (once)")
        subprocess.run([sys.executable, "-m", "venv", path], check=True)
        subprocess.run([path / "bin" / "pip", "install", "--quiet", PACKAGE, "numpy"], check=True)
        ready.touch()
    return path


def probed(probe: str, python: Path | str, system: str) -> dict[str, float]:
    """Run a probe in an environment; return its figures.

    Args:
        probe: the path of its file. Its last line of output has the figures, as JSON.
        python: the interpreter of the environment.
        system: `ours`, or `ray`.
    """
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        variables = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
        if system == "ours":
            variables["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
        done = subprocess.run(
            [python, probe, system],
            env=variables,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PROBE_LIMIT_S,
            check=True,
        )
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    say(f"{system}: {found}")
    return found


@contextmanager
def running() -> Iterator[Ray]:
    """Start a head node on loopback, and stop it with all its processes at the end."""
    path = environment()
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        dashboard, port = free_port(), free_port()
        variables = {
            "PATH": f"{path / 'bin'}:/usr/bin:/bin",
            "HOME": folder,
            "RAY_ADDRESS": f"http://127.0.0.1:{dashboard}",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        }
        head = _start_head(path, port, dashboard, Path(folder), variables)
        try:
            _wait_for(dashboard, head)
            yield Ray(path, variables["RAY_ADDRESS"], variables)
        finally:
            _stop(head)


def _start_head(
    path: Path, port: int, dashboard: int, folder: Path, variables: dict[str, str]
) -> subprocess.Popen[bytes]:
    log = (folder / "ray.log").open("wb")
    start = {key: value for key, value in variables.items() if key != "RAY_ADDRESS"}
    return subprocess.Popen(
        [
            *(path / "bin" / "ray", "start", "--head", "--block", "--node-ip-address=127.0.0.1"),
            *(f"--port={port}", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}"),
            f"--temp-dir={folder}",
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
        env=start,
        start_new_session=True,
    )


def _wait_for(port: int, head: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if head.poll() is not None:
            raise RuntimeError(f"ray start ended with {head.returncode}")
        with socket.socket() as probe:
            probe.settimeout(0.5)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("Ray's dashboard does not listen")


def _stop(head: subprocess.Popen[bytes]) -> None:
    """End the head and everything it started, by pid."""
    pids = with_descendants([head.pid])
    head.terminate()
    try:
        head.wait(20)
    except subprocess.TimeoutExpired:
        say("Ray did not stop in time")
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def free_port() -> int:
    """Return a port of loopback that nothing uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
