"""Jobs as processes of this machine."""

from __future__ import annotations

import itertools
import shlex
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from monarch_client.context.api import TaskApi
from monarch_client.context.cluster.base import ClusterContext, JobInfo, T, not_found
from monarch_client.context.cluster.local_process import LocalProcess
from monarch_client.context.cluster.scripts import run_script, setup_script
from monarch_client.context.cluster.tpu import TpuRunConfig
from monarch_client.context.errors import ContextClosedError, NoTpuError
from monarch_client.context.options import RuntimeEnv
from monarch_client.runner.base import process_end


class LocalClusterContext(ClusterContext):
    """Jobs on this machine, in this program's directory. They end with the program."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="context-jobs-"))
        self._jobs: dict[str, LocalProcess] = {}
        self._numbers = itertools.count(1)
        self._is_closed = False
        process_end.arm(self, self.close)

    def __enter__(self) -> LocalClusterContext:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop all jobs and remove their logs."""
        self._is_closed = True
        for job in self._jobs.values():
            job.stop()
        self._jobs.clear()
        process_end.disarm(self)
        shutil.rmtree(self._folder, ignore_errors=True)

    def create_job(self, entrypoint: str, env: RuntimeEnv | None = None) -> str:
        """Start a shell script as a job, and return the job's id."""
        if self._is_closed:
            raise ContextClosedError
        env = env or RuntimeEnv()
        job_id = f"local-{next(self._numbers)}"
        folder = self._folder / job_id
        folder.mkdir()
        packages = shlex.quote(str(folder / "packages"))
        script = run_script(entrypoint, env, packages)
        if setup := setup_script(env, packages):
            script = f"{setup} || exit\n{script}"
        self._jobs[job_id] = LocalProcess(job_id, script, env.env, folder)
        return job_id

    def list_jobs(self) -> list[JobInfo]:
        """List the jobs of this context, oldest first."""
        return [job.info() for job in list(self._jobs.values())]

    def delete_job(self, job_id: str) -> None:
        """Stop a job; remove one that has ended, with its log. An unknown id is ignored."""
        job = self._jobs.get(job_id)
        if job is None:
            return
        if not job.has_ended():
            job.stop()
        elif self._jobs.pop(job_id, None):
            shutil.rmtree(self._folder / job_id, ignore_errors=True)

    def get_job_logs(self, job_id: str) -> tuple[str, str]:
        """Return what a job has written to stdout and stderr. JobNotFoundError: unknown id."""
        job = self._jobs.get(job_id)
        if job is None:
            raise not_found(job_id)
        return job.logs()

    def run_on_tpu(
        self,
        fn: Callable[[TaskApi], T],
        config: TpuRunConfig,
        runtime_env: RuntimeEnv | None = None,
    ) -> list[T]:
        """Raise NoTpuError: a context of this machine has no TPU slices."""
        raise NoTpuError(
            f"This machine has no slices of {config.accelerator}. "
            "Use PortalClusterContext with a portal whose clouds have TPUs."
        )
