"""Machines as SkyPilot leaves them to a job: homes, the files it brought, and its variables."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from monarch_client.runner.base.process_tree import marked_processes
from monarch_client.runner.boot import boot_script
from monarch_client.runner.bundle import build
from tests.fake_ingest import FakeIngest
from tests.runner_harness import SHORT_TIMEOUTS, wait_until

_networks = itertools.count(os.getpid() % 200)
TOKEN = "secret-token"


class SkyPilotNodes:
    """A cluster that stays up between jobs. With `shared_home` all nodes see the same files."""

    def __init__(self, folder: Path, nodes: int = 1, *, shared_home: bool = False) -> None:
        self.folder = folder
        network = f"127.{100 + next(_networks) % 100}.{os.getpid() % 250 + 1}"
        self.addresses = [f"{network}.{110 + rank}" for rank in range(nodes)]
        names = ["home"] * nodes if shared_home else [f"home-{rank}" for rank in range(nodes)]
        self.homes = [folder / name for name in names]
        for home in self.homes:
            (home / "sky_workdir").mkdir(parents=True, exist_ok=True)
        self.jobs: list[SkyPilotJob] = []

    def job(self, **settings: Any) -> SkyPilotJob:
        """Start another attempt; `settings` go to attempt.json, `on` limits its nodes."""
        attempt_id = settings.pop("attempt_id", 17 + len(self.jobs))
        self.jobs.append(SkyPilotJob(self, attempt_id, **settings))
        return self.jobs[-1]

    def close(self) -> None:
        for job in self.jobs:
            job.close()


class SkyPilotJob:
    """One attempt: the files on its nodes, their programs, and the frames for the portal."""

    def __init__(self, cluster: SkyPilotNodes, attempt_id: int, **settings: Any) -> None:
        self.cluster = cluster
        self.homes = cluster.homes[: settings.pop("on", None)]
        self.addresses = cluster.addresses[: len(self.homes)]
        self.attempt_id = attempt_id
        self.ingest = FakeIngest(TOKEN)
        self.environment: dict[str, str] = {}
        self.path = [str(Path(sys.executable).parent), os.environ["PATH"]]
        self.runners: list[subprocess.Popen[bytes]] = []
        self.archives: list[Path] = []
        self.config: dict[str, Any] = {
            "format": 1,
            "attempt_id": attempt_id,
            "job_id": 42,
            "attempt_number": len(cluster.jobs) + 1,
            "project": "default",
            "job_name": "test",
            "portal_url": self.ingest.url,
            "token": TOKEN,
            "nodes": None,
            "run": "true",
            "python": "python3",
            "timeouts": dict(SHORT_TIMEOUTS),
            "linger_s": 30,
            # Samples are printed by the clock, and are in no journal.
            "metrics_s": 0,
            **settings,
        }

    def brings(self, archive: Path, target: str) -> None:
        """Have an upload unpacked at `target`."""
        name = f"uploads/{len(self.archives)}.tar.gz"
        self.archives.append(archive)
        self.config.setdefault("uploads", []).append({"archive": name, "target": target})

    def root(self, rank: int = 0) -> Path:
        return self.cluster.homes[rank] / ".mportal" / str(self.attempt_id) / f"rank-{rank}"

    def workdir(self, rank: int = 0) -> Path:
        return self.root(rank) / "workdir"

    def brought(self, rank: int = 0) -> Path:
        """Return the folder to which SkyPilot copies the attempt's files."""
        return self.cluster.homes[rank] / "sky_workdir" / f"mp-{self.attempt_id}"

    def start(self) -> None:
        for rank, home in enumerate(self.homes):
            self._bring(self.brought(rank))
            with self._log(rank, "out").open("wb") as out, self._log(rank, "err").open("wb") as err:
                self.runners.append(
                    subprocess.Popen(
                        ["bash", "-c", boot_script(self.attempt_id)],
                        cwd=home / "sky_workdir",
                        env=self._environment(rank),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        start_new_session=True,
                    )
                )

    def wait(self, seconds: float = 60.0) -> list[int]:
        """Wait for all nodes; their exit codes."""
        return [runner.wait(seconds) for runner in self.runners]

    def run(self) -> dict[str, Any]:
        """Run the attempt to its end; return the end frame."""
        self.start()
        assert self.wait() == [0] * len(self.runners), self.errors()
        return self.ingest.end

    def printed(self, rank: int = 0) -> bytes:
        """Return the output of a node, which SkyPilot's log contains."""
        return self._log(rank, "out").read_bytes()

    def errors(self, rank: int = 0) -> str:
        return self._log(rank, "err").read_text()

    def stages(self) -> dict[str, str]:
        """Return the detail of each stage's end."""
        ends = [frame for frame in self.ingest.of_kind("stage") if frame["phase"] == "end"]
        return {frame["stage"]: frame["detail"] for frame in ends}

    def close(self) -> None:
        for runner in self.runners:
            if runner.poll() is None:
                os.killpg(runner.pid, signal.SIGKILL)
            runner.wait(10)
        self.ingest.stop()
        wait_until(lambda: not self._kill_leftovers())

    def processes(self) -> list[int]:
        return [pid for rank in range(len(self.runners)) for pid in self._processes_of(rank)]

    def _processes_of(self, rank: int) -> list[int]:
        return marked_processes(self.root(rank))

    def _kill_leftovers(self) -> list[int]:
        left = self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    def _bring(self, target: Path) -> None:
        (target / "uploads").mkdir(parents=True, exist_ok=True)
        build(target / "runner.pyz")
        (target / "attempt.json").write_text(json.dumps(self.config))
        for number, archive in enumerate(self.archives):
            shutil.copyfile(archive, target / "uploads" / f"{number}.tar.gz")

    def _environment(self, rank: int) -> dict[str, str]:
        return {
            "PATH": os.pathsep.join(self.path),
            "HOME": str(self.cluster.homes[rank]),
            "LANG": "C.UTF-8",
            "SKYPILOT_NODE_RANK": str(rank),
            "SKYPILOT_NODE_IPS": "\n".join(self.addresses),
            "SKYPILOT_NUM_NODES": str(len(self.addresses)),
            "SKYPILOT_NUM_GPUS_PER_NODE": "2",
            "SKYPILOT_TASK_ID": "sky-2026",
            **self.environment,
        }

    def _log(self, rank: int, stream: str) -> Path:
        return self.cluster.folder / f"{self.attempt_id}-{rank}.{stream}"
