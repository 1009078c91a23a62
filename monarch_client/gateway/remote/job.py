"""A Monarch job on workers that already run, or that the portal starts: `RemoteJob`.

    with RemoteJob(compute=Compute(gpu=8, gpu_type="H100", replicas=4)) as job:
        procs = job.state().workers.spawn_procs(per_host={"gpus": 8})

Imports monarch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from monarch.job import JobState, JobTrait

from monarch_client.gateway.remote.compute import defaults_for_program, spec_of
from monarch_client.gateway.remote.request import (
    RemoteOptions,
    RemoteRequest,
    Selector,
    exactly_one,
    refuse_for_compute,
)
from monarch_client.gateway.remote.sources import PortalWorkers, RunningWorkers, Source
from monarch_client.gateway.synced_session import HookT, Reload

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from monarch_client.gateway.code_sync import SyncResult
    from monarch_client.gateway.connecting import Connection


class RemoteJob(JobTrait):  # type: ignore[misc]  # monarch has no types
    """Named meshes of workers outside of this program's network.

    `compute` describes machines: the portal starts a job on them, which ends with this one.
    `selector` are the labels of Kubernetes pods that run workers, `hosts` addresses of workers:
    neither is ended. Exactly one of the three is given. With `compute`, the project files of the
    current folder give defaults. Options: docs/reference/remote-job.md.
    ValueError, TypeError: what cannot be meant. Errors of the rest are `ClientError`.
    """

    def __init__(
        self,
        compute: Any = None,
        selector: Selector | None = None,
        hosts: Sequence[str] | None = None,
        **options: Unpack[RemoteOptions],
    ) -> None:
        super().__init__()
        exactly_one(compute=compute, selector=selector, hosts=hosts)
        project = options.pop("project", None)
        request = RemoteRequest.of(selector, hosts, options)
        self.name = request.name
        self._source: Source
        if compute is None:
            self._source = RunningWorkers(request)
        else:
            refuse_for_compute(options)
            defaults = defaults_for_program(Path.cwd())
            spec = spec_of(compute, options.get("name"), request.meshes, defaults)
            self.name = str(spec.setdefault("name", request.name))
            self._source = PortalWorkers(spec, project, request.sync_dirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def state(self, cached_path: str | None = None) -> JobState:
        """Return the meshes as attributes; the first call brings everything up.

        No later process finds this job in a file: `cached_path` is None.
        """
        if cached_path is not None:
            raise ValueError("A RemoteJob is not stored in a file: leave cached_path out.")
        return super().state(None)

    def sync(self, *, reload: Reload | None = None) -> SyncResult:
        """Send the changes in `sync_dirs` to all nodes, as `Connection.sync` does."""
        return self._synced.sync(reload=reload)

    def after_sync(self, hook: HookT) -> HookT:
        """Call `hook` now and after syncs that end procs, as `Connection.after_sync` does."""
        return self._synced.after_sync(hook)

    @property
    def _synced(self) -> Connection:
        if not isinstance(self._source, PortalWorkers):
            raise ValueError("Code is synchronized with compute only.")
        return self._source.connection

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` is this very job."""
        return spec is self

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise NotImplementedError(
                "A RemoteJob's client is the program that makes it. To run one on the cluster, "
                "submit a job to a portal."
            )
        self._source.find()

    def _state(self) -> JobState:
        try:
            return JobState(dict(self._source.attached()))
        except BaseException:
            self._source.release()
            self._status = "not_running"
            raise

    def _requires_sidecar_gateway(self) -> bool:
        return True

    def _prepare_client_gateway(self) -> None:
        self._source.join()

    def _kill(self) -> None:
        self._source.release()
