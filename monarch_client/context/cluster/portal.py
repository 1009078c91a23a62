"""Jobs of a portal."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from monarch_client import rest, wire
from monarch_client.context import pickling
from monarch_client.context.api import TaskApi
from monarch_client.context.cluster.base import ClusterContext, JobInfo, JobStatus, T, not_found
from monarch_client.context.cluster.host_call import FUNCTION_FILE, read_outcomes
from monarch_client.context.cluster.specifications import script_spec, tpu_spec
from monarch_client.context.cluster.tpu import TpuRunConfig
from monarch_client.context.errors import ClusterJobError, NoTpuError
from monarch_client.context.options import RuntimeEnv
from monarch_client.errors import ConflictError, InvalidSpecErrors, MissingError, UnreachableError
from monarch_client.rest.config import load, project_of, signed_in
from monarch_client.runner.base import process_end
from monarch_client.sync.packing import pack

POLL_S = 1.0
_REMOVAL_TRIES = 60
_PAGE = 1000
_STATUSES = {
    "QUEUED": JobStatus.PENDING,
    "PROVISIONING": JobStatus.PENDING,
    "SETTING_UP": JobStatus.PENDING,
    "SUCCEEDED": JobStatus.SUCCEEDED,
    "FAILED": JobStatus.FAILED,
    "CANCELLED": JobStatus.STOPPED,
}
# Of those that hold machines: RUNNING, RECOVERING, STOPPING.
_OTHERS = JobStatus.RUNNING


class PortalClusterContext(ClusterContext):
    """The jobs of one user in one project of a portal.

    By default the portal and project are those that `mportal login` or MPORTAL_URL, MPORTAL_TOKEN
    and MPORTAL_PROJECT name. `resources` are in each specification, such as
    `{"infra": "gcp/us-central2"}`; `num_nodes` is the number of nodes that run each script.
    """

    def __init__(
        self,
        client: rest.PortalClient | None = None,
        project: str | None = None,
        *,
        resources: Mapping[str, Any] | None = None,
        num_nodes: int = 1,
    ) -> None:
        config = load(os.environ)
        self._client = client or signed_in(config)
        self._project = project_of(self._client, project or config.project or None)
        self._resources = dict(resources or {})
        self._num_nodes = num_nodes

    def create_job(self, entrypoint: str, env: RuntimeEnv | None = None) -> str:
        """Submit a shell script as a job, and return the job's id."""
        spec = script_spec(entrypoint, env or RuntimeEnv(), self._resources, self._num_nodes)
        return str(self._client.submit(self._project, spec).id)

    def list_jobs(self) -> list[JobInfo]:
        """List the user's jobs in the project, oldest first."""
        return [_info(job) for job in self._jobs()][::-1]

    def delete_job(self, job_id: str) -> None:
        """Stop a job; remove one that has ended, with its log. An unknown id is ignored.

        The job is RUNNING until its processes have ended. One whose machines are being terminated
        is removed after that; ConflictError: they still are after a minute.
        """
        job = self._find(job_id)
        if job is None:
            return
        if job.is_final:
            self._remove(job)
            return
        self._cancel(job)

    def get_job_logs(self, job_id: str) -> tuple[str, str]:
        """Return stdout and stderr of a job's last attempt. JobNotFoundError: unknown id."""
        job = self._find(job_id)
        if job is None:
            raise not_found(job_id)
        stdout, stderr = (
            "".join(f"{text}\n" for _, text in self._lines(job, stream))
            for stream in ("stdout", "stderr")
        )
        return stdout, stderr

    def run_on_tpu(
        self,
        fn: Callable[[TaskApi], T],
        config: TpuRunConfig,
        runtime_env: RuntimeEnv | None = None,
    ) -> list[T]:
        """Call `fn(context)` once on each host of TPU slices; return the results by rank.

        An error of `fn` is raised here. NoTpuError: the portal has no such slices. The job is
        cancelled if this call is interrupted.
        """
        env = runtime_env or RuntimeEnv()
        spec = tpu_spec(self._uploaded(fn), config, env, self._resources)
        try:
            job = self._run(spec)
        except InvalidSpecErrors as error:
            if any(each.path == "resources.accelerators" for each in error.errors):
                raise _no_slices(config, error.message) from error
            raise
        return self._results(job, config)

    def _run(self, spec: Mapping[str, Any]) -> wire.jobs.Job:
        """Submit a job and return it when it has ended. It is cancelled if this is interrupted."""
        running: list[wire.jobs.Job] = []

        def cancel() -> None:
            for job in running:
                self._cancel(job)

        with process_end.ending(cancel):
            with process_end.undisturbed():
                running.append(self._client.submit(self._project, spec))
            job = self._ended(running[0])
            running.clear()
        return job

    def _cancel(self, job: wire.jobs.Job) -> None:
        # In a conflict it has ended meanwhile.
        with suppress(MissingError, ConflictError):
            self._client.cancel(self._project, job.id)

    def _remove(self, job: wire.jobs.Job) -> None:
        with suppress(MissingError):
            for _ in range(_REMOVAL_TRIES):
                with suppress(ConflictError):
                    self._client.delete(self._project, job.id)
                    return
                self._client.connection.sleep(POLL_S)
            self._client.delete(self._project, job.id)

    def _results(self, job: wire.jobs.Job, config: TpuRunConfig) -> list[Any]:
        outcomes = read_outcomes(self._lines(job, "stdout"))
        for _, outcome in sorted(outcomes.items()):
            if outcome.error is not None:
                raise outcome.error
        if job.stop_reason == "NO_CAPACITY":
            raise _no_slices(config, job.message)
        if job.status != "SUCCEEDED":
            raise ClusterJobError(f"Job {job.id} ended as {job.status}: {job.message} {job.url}")
        if len(outcomes) != config.host_count:
            raise ClusterJobError(
                f"Job {job.id} returned {len(outcomes)} results, and {config.num_slices} x "
                f"{config.tpu_type} has {config.host_count} hosts. {job.url}"
            )
        return [outcomes[rank].value for rank in sorted(outcomes)]

    def _uploaded(self, fn: Callable[[TaskApi], Any]) -> str:
        """Upload a folder with the pickled function; return its name in specifications."""
        with tempfile.TemporaryDirectory(prefix="context-") as folder:
            work = Path(folder) / "work"
            work.mkdir()
            (work / FUNCTION_FILE).write_bytes(pickling.dumps(fn))
            packed = pack(work, Path(folder) / "work.tar.gz")
            if not self._client.has_upload(self._project, packed.digest):
                self._client.upload(self._project, packed.path)
            return packed.reference

    def _ended(self, job: wire.jobs.Job) -> wire.jobs.Job:
        """Wait for the end of a job, also while the portal restarts."""
        while not job.is_final:
            self._client.connection.sleep(POLL_S)
            try:
                job = self._client.job(self._project, job.id)
            except UnreachableError:
                continue
        return job

    def _find(self, job_id: str) -> wire.jobs.Job | None:
        """Return a job; None if there is none."""
        if not job_id.isdecimal():
            return None
        try:
            return self._client.job(self._project, int(job_id))
        except MissingError:
            return None

    def _jobs(self) -> Iterator[wire.jobs.Job]:
        """Yield the user's jobs, newest first."""
        cursor: str | None = None
        while True:
            page = self._client.jobs(self._project, user="me", limit=100, cursor=cursor)
            yield from page.results
            cursor = page.next
            if cursor is None:
                return

    def _lines(self, job: wire.jobs.Job, stream: str) -> Iterator[tuple[int, str]]:
        """Yield the lines of a stream of the last attempt, each with its rank."""
        after, begun = "", dict[int, str]()
        while job.attempt_count:
            page = self._client.logs(
                job.project,
                job.id,
                attempt=job.attempt_count,
                stream=stream,
                after=after,
                limit=_PAGE,
            )
            for line in page.results:
                text = begun.pop(line.rank, "") + line.text
                if line.more:
                    begun[line.rank] = text
                else:
                    yield line.rank, text
            if len(page.results) < _PAGE or page.next is None:
                break
            after = page.next
        yield from begun.items()


def _info(job: wire.jobs.Job) -> JobInfo:
    status = _STATUSES.get(job.status, _OTHERS)
    return JobInfo(str(job.id), status, job.created_at, job.started_at, job.ended_at)


def _no_slices(config: TpuRunConfig, reason: str) -> NoTpuError:
    return NoTpuError(
        f"The portal has no slices of {config.accelerator}: {reason} "
        "Connect a cloud that has them, or name it in resources, such as infra: gcp."
    )
