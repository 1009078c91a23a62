"""The workers of a RemoteJob: those that run already, or those of a job that the portal starts."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from monarch_client.attaching import meshes
from monarch_client.attaching.errors import AttachError
from monarch_client.attaching.folders import PrivateFolder, sweep
from monarch_client.attaching.loss import LossAlarm
from monarch_client.attaching.watch import LossWatch
from monarch_client.errors import ClientError, ConflictError
from monarch_client.gateway.connecting import Connection, connect
from monarch_client.gateway.remote.pods import find_workers
from monarch_client.gateway.remote.reach import Way
from monarch_client.gateway.remote.request import RemoteRequest, Worker
from monarch_client.rest.client import PortalClient
from monarch_client.rest.config import load, project_of, signed_in
from monarch_client.runner.base import process_end
from monarch_client.wire.jobs import Job

log = logging.getLogger(__name__)
POLL_S = 1.0


class JobEndedError(AttachError):
    """The job ended before its workers could be used."""

    code = "job_ended"


class Source(Protocol):
    """The workers of a RemoteJob as its methods use them."""

    def find(self) -> None:
        """Find or start the workers."""

    def join(self) -> None:
        """Attach this process to them."""

    def attached(self) -> Mapping[str, Any]:
        """Return the meshes by name; the first call attaches to them."""

    def release(self) -> None:
        """End the processes of this program, and whatever it started."""


class RunningWorkers:
    """Workers that run already, which go on when this program ends."""

    def __init__(self, request: RemoteRequest) -> None:
        self._request = request
        self._workers: list[Worker] = []
        self._meshes: dict[str, Any] = {}
        self._folder: PrivateFolder | None = None
        self._opened: Way | None = None
        self._watch: LossWatch | None = None

    def find(self) -> None:
        """Find the workers; pods may have to get ready."""
        self._workers = list(self._request.hosts) or find_workers(self._request)

    def join(self) -> None:
        """Attach this process to the first one, which carries the traffic of the others."""
        meshes.join(self._way.gateway, self._request.certificates)

    def attached(self) -> Mapping[str, Any]:
        """Return the meshes by name."""
        if not self._meshes:
            owner = f"job {self._request.name}"
            looks = self._way.looks
            self._watch = self._watch or LossWatch(owner, looks, LossAlarm())
            self.join()
            process_end.arm(self, self.release)
            found = meshes.meshes_of(self._request.deal(self._workers))
            shared = meshes.SharedHostMesh
            self._meshes = {name: shared.of(mesh, owner) for name, mesh in found.items()}
        return self._meshes

    def release(self) -> None:
        """End the processes of this program. The workers go on."""
        process_end.disarm(self)
        watch, self._watch = self._watch, None
        if watch is None or watch.error is None:
            meshes.stop(self._meshes)
        self._meshes = {}
        if watch is not None:
            watch.close()
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    @property
    def _way(self) -> Way:
        if self._opened is None:
            if self._folder is None:
                sweep()
                self._folder = PrivateFolder()
            self._opened = Way(self._request, self._workers, self._folder.path)
        return self._opened


class PortalWorkers:
    """The workers of a job that this program submits, and that ends with it."""

    def __init__(
        self, spec: Mapping[str, Any], project: str | None, sync_dirs: Sequence[str] = ()
    ) -> None:
        self._spec = dict(spec)
        self._project = project
        self._sync_dirs = list(sync_dirs)
        self._client: PortalClient | None = None
        self._job: Job | None = None
        self._connection: Connection | None = None
        # The meshes that the program has shut down.
        self._ended: set[str] = set()

    def find(self) -> None:
        """Submit the job, and wait until it runs. JobEndedError: it never did."""
        config = load(os.environ)
        client = self._client = signed_in(config)
        named = (self._spec.get("portal") or {}).get("project")
        slug = project_of(client, self._project or named or config.project)
        process_end.arm(self, self.release)
        try:
            with process_end.undisturbed():
                job = self._job = client.submit(slug, self._spec)
            log.info("Job %s (%s): %s", job.id, job.name, job.url)
            self._wait(client, job)
        except BaseException:
            self.release()
            raise

    def join(self) -> None:
        """Attach this process through the portal's gateway."""
        if self._connection is None and self._job is not None:
            self._connection = connect(
                self._job.id, self._job.project, sync=self._sync_dirs or False
            )

    def attached(self) -> Mapping[str, Any]:
        """Return the meshes by name; `shutdown` of the last one ends the job."""
        self.join()
        found = dict(self._connection.meshes) if self._connection else {}
        for name, mesh in found.items():
            mesh.end_workers = partial(self._shut_down, name)
        return found

    def _shut_down(self, name: str) -> None:
        self._ended.add(name)
        if self._connection is not None and self._ended >= set(self._connection.meshes):
            self.release()

    @property
    def connection(self) -> Connection:
        """The session in the job. AttachError: there is none."""
        if self._connection is None:
            raise AttachError("The job is not attached: call state() first.")
        return self._connection

    def release(self) -> None:
        """End the processes of this program, and the job."""
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                connection.close()
        finally:
            self._end_job()

    def _end_job(self) -> None:
        """End the job, and with it the need for a clean-up at the end of this process."""
        with process_end.undisturbed():
            job, self._job = self._job, None
            client, self._client = self._client, None
            process_end.disarm(self)
            if client is not None:
                with client:
                    _cancel(client, job)

    def _wait(self, client: PortalClient, job: Job) -> None:
        while job.status != "RUNNING":
            if job.is_final:
                raise JobEndedError(
                    f"Job {job.id} ended before its workers could be used: {job.message} "
                    f"{job.hint} See: mportal logs {job.id}"
                )
            time.sleep(POLL_S)
            job = client.job(job.project, job.id)


def _cancel(client: PortalClient, job: Job | None) -> None:
    if job is None:
        return
    try:
        client.cancel(job.project, job.id)
    except ConflictError:
        return  # it has ended already
    except ClientError as error:
        log.error("Job %s is not ended: %s Type: mportal cancel %s", job.id, error, job.id)
