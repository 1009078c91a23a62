"""A Monarch job on workers that already run: `RemoteJob`.

    with RemoteJob(hosts=["10.0.0.5", "10.0.0.6"], meshes={"trainers": 2}) as job:
        procs = job.state().trainers.spawn_procs(per_host={"gpus": 8})

Imports monarch.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from monarch.job import JobState, JobTrait

from monarch_client.attaching import meshes
from monarch_client.attaching.loss import LossAlarm
from monarch_client.attaching.watch import LossWatch
from monarch_client.gateway.remote.pods import find_workers
from monarch_client.gateway.remote.reach import Way
from monarch_client.gateway.remote.request import (
    RemoteOptions,
    RemoteRequest,
    Selector,
    Worker,
    exactly_one,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class _Live:
    """The parts of this process alone: meshes, the way to them, its folder and the watch."""

    def __init__(self) -> None:
        self.meshes: dict[str, Any] = {}
        self.folder: Path | None = None
        self.way: Way | None = None
        self.watch: LossWatch | None = None


class RemoteJob(JobTrait):  # type: ignore[misc]  # monarch has no types
    """Named meshes of workers that this program did not start, and does not end.

    `hosts` are addresses of workers; `selector` are the labels of Kubernetes pods that run them.
    Exactly one of them is given. Options: docs/reference/remote-job.md. ValueError, TypeError: what
    cannot be meant. Errors of the rest are `attaching.errors.AttachError`.
    """

    def __init__(
        self,
        selector: Selector | None = None,
        hosts: Sequence[str] | None = None,
        **options: Unpack[RemoteOptions],
    ) -> None:
        super().__init__()
        exactly_one(selector=selector, hosts=hosts)
        self._request = RemoteRequest.of(selector, hosts, options)
        self._workers: list[Worker] = []
        self._live = _Live()

    @property
    def name(self) -> str:
        """The job's name, in errors and logs."""
        return self._request.name

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
        """Return the meshes as attributes; the first call attaches to the workers.

        Nothing is remembered in a file unless a path is given: the workers are found again.
        """
        return super().state(cached_path)

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` names the same workers, which are attached to again."""
        return isinstance(spec, RemoteJob) and spec._request == self._request

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_live"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._live = _Live()

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise NotImplementedError(
                "A RemoteJob's client is the program that makes it. To run one on the cluster, "
                "submit a job to a portal."
            )
        request = self._request
        self._workers = list(request.hosts) or find_workers(request)

    def _state(self) -> JobState:
        if not self._live.meshes:
            try:
                self._attach()
            except BaseException:
                self._release()
                raise
        return JobState(dict(self._live.meshes))

    def _requires_sidecar_gateway(self) -> bool:
        return True

    def _prepare_client_gateway(self) -> None:
        meshes.join(self._way.gateway, self._request.certificates)

    def _attach(self) -> None:
        way = self._way
        self._live.watch = LossWatch(f"job {self.name}", way.looks, LossAlarm())
        meshes.join(way.gateway, self._request.certificates)
        found = meshes.meshes_of(self._request.deal(self._workers))
        owner = f"job {self.name}"
        self._live.meshes = {
            name: meshes.SharedHostMesh.of(mesh, owner) for name, mesh in found.items()
        }

    @property
    def _way(self) -> Way:
        live = self._live
        if live.way is None:
            if live.folder is None:
                live.folder = Path(tempfile.mkdtemp(prefix="mportal-"))
            live.way = Way(self._request, self._workers, live.folder)
        return live.way

    def _kill(self) -> None:
        """End the processes of this program. The workers go on, for they are not ours."""
        watch = self._live.watch
        if watch is None or watch.error is None:
            meshes.stop(self._live.meshes)
        self._release()

    def _release(self) -> None:
        live, self._live = self._live, _Live()
        if live.watch is not None:
            live.watch.close()
        if live.way is not None:
            live.way.close()
        if live.folder is not None:
            shutil.rmtree(live.folder, ignore_errors=True)
