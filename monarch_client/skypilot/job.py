"""A Monarch job on machines of SkyPilot's, without a portal: `SkyPilotJob`.

    job = SkyPilotJob({"trainers": 2}, {"accelerators": "H100:8"})
    with job:
        trainers = job.state().trainers

Imports monarch; SkyPilot is asked by a child process.
"""

from __future__ import annotations

import getpass
import logging
import secrets
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from monarch.job import JobState, JobTrait, job_load

from monarch_client.attaching.folders import PrivateFolder, sweep
from monarch_client.attaching.loss import LossAlarm
from monarch_client.attaching.tunnel import Tunnel
from monarch_client.attaching.watch import LossWatch, PortLook
from monarch_client.runner.base import config as runner_config
from monarch_client.runner.base import process_end
from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.skypilot import job_cache, job_gateway, task
from monarch_client.skypilot.job_cluster import JobCluster
from monarch_client.skypilot.job_errors import (
    CacheError,
    SkyPilotJobError,
)
from monarch_client.skypilot.job_log import Worker, refuse_other_pythons
from monarch_client.skypilot.job_spec import JobOptions, JobSpec
from monarch_client.skypilot.tunnel import way_to

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

log = logging.getLogger(__name__)

# A file for each user and each specification; nothing where the cluster ends with its process.
OWN_CACHE = ".monarch/skypilot-{user}-{digest}.pkl"
_CERTIFICATES = ("leaf.crt", "leaf.key", "ca.crt")


class _Live:
    """The parts of this process alone: meshes, a tunnel, its folder, SkyPilot's caller."""

    def __init__(self) -> None:
        self.meshes: dict[str, Any] = {}
        self.gateway = ""
        self.tunnel: Tunnel | None = None
        self.folder: PrivateFolder | None = None
        self.cluster: JobCluster | None = None
        self.watch: LossWatch | None = None


class SkyPilotJob(JobTrait):  # type: ignore[misc]  # monarch has no types
    """Named meshes of Monarch hosts on one cluster, which SkyPilot provides.

    `meshes`: how many hosts each has. `resources`: as in a SkyPilot YAML, or a `sky.Resources`.
    Options: docs/reference/skypilot-job.md. ValueError, TypeError: what cannot be meant. Errors of
    the rest derive from `job_errors.SkyPilotJobError`.
    """

    def __init__(
        self,
        meshes: Mapping[str, int],
        resources: Any = None,
        **options: Unpack[JobOptions],
    ) -> None:
        super().__init__()
        self._spec = JobSpec.of(meshes, resources, options)
        self._name = self._spec.cluster_name or f"monarch-{secrets.token_hex(4)}"
        self._workers: list[Worker] = []
        self._attempt_id = 0
        self._job_id = 0
        self._hash = ""
        self._certificates: dict[str, str] = {}
        self._has_been_reached = False
        self._live = _Live()

    @property
    def cluster_name(self) -> str:
        """SkyPilot's name of it; of a job that was found again, that of the cluster it is on."""
        running = self._running
        is_found = isinstance(running, SkyPilotJob) and running is not self
        return str(running.cluster_name if is_found else self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.kill()
        except SkyPilotJobError as trouble:
            if error is None:
                raise
            log.error("%s", trouble)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_live"]
        state["_spec"] = self._spec.without_secrets()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._live = _Live()

    def state(self, cached_path: str | None = OWN_CACHE) -> JobState:
        """Return the meshes as attributes; the first call brings everything up.

        A job with `idle_minutes_to_autostop` is found again by a later process with the same
        specification, through `cached_path`; by default in a file of its own below `.monarch`.
        """
        if cached_path == OWN_CACHE:
            cached_path = self.own_cache if self._spec.is_kept else None
        return super().state(cached_path)

    @property
    def own_cache(self) -> str:
        """The default file of this job, which no other specification uses."""
        return OWN_CACHE.format(user=getpass.getuser(), digest=self._spec.digest)

    def dump(self, filename: str) -> None:
        """Write the job to a file that only its user can read: it gives access to the workers."""
        job_cache.write(self, filename)

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` requests what this job is, and its workers are there.

        CacheError, for a job of another kind: Monarch would end this one where we said no.
        """
        if not isinstance(spec, SkyPilotJob):
            raise CacheError(
                f"The cache file holds SkyPilotJob {self.cluster_name}, not a "
                f"{type(spec).__name__}: give each job a cached_path of its own."
            )
        return spec._spec.digest == self._spec.digest and self._is_running()

    def _is_running(self) -> bool:
        """Whether the cluster is the one that was launched, and its workers' job runs."""
        if not self.active:
            return False
        row = self._cluster.row()
        is_same = row is not None and row["status"] == "UP" and row["hash"] == self._hash
        return is_same and self._cluster.has_job(self._job_id)

    def _load_cached(self, cached_path: str | None) -> JobTrait | None:
        """Load as Monarch does, but read no other user's job and end no living one."""
        if cached_path is None or not Path(cached_path).exists():
            return None
        job_cache.refuse_others(Path(cached_path))
        job = job_load(cached_path)
        running = job._running
        if not isinstance(running, SkyPilotJob):
            raise CacheError(f"{cached_path} holds a {type(job).__name__}: name another file.")
        is_same = running._spec.digest == self._spec.digest
        if is_same:
            # How it is reached is this program's business.
            running._spec = self._spec
        if running._is_running():
            if is_same:
                return job
            raise CacheError(
                f"{cached_path} holds another job, which runs on {running.cluster_name}. Name "
                f"another cached_path, or end it: sky down {running.cluster_name}"
            )
        running._let_go()
        Path(cached_path).unlink(missing_ok=True)
        return None

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise NotImplementedError(
                "A SkyPilotJob's client is the program that makes it. To run one on the cluster, "
                "submit a job to a portal, or use sky launch."
            )
        self._cluster.connect()
        self._cluster.refuse_if_exists()
        process_end.arm(self, self._end)
        try:
            self._bring_up()
        except BaseException:
            self._end_quietly()
            raise

    def _bring_up(self) -> None:
        attempt = task.Attempt.new(self.cluster_name)
        self._attempt_id = attempt.id
        self._mint(attempt)
        with tempfile.TemporaryDirectory(prefix="mportal-") as folder:
            staged = task.stage(self._spec, attempt, Path(folder))
            self._job_id = self._cluster.launch(staged)
        row = self._cluster.row() or {}
        self._hash = str(row.get("hash", ""))
        self._workers = self._cluster.wait_for_workers(self._job_id)
        refuse_other_pythons(self._workers, "{}.{}".format(*sys.version_info[:2]))

    def _mint(self, attempt: task.Attempt) -> None:
        """Mint a certificate of our own; then the authority's key is needed on the nodes alone."""
        authority = runner_config.Authority(attempt.authority.certificate, attempt.authority.key)
        mint_leaf(authority, ["127.0.0.1", "localhost"], self._folder, sys.executable)
        self._certificates = {name: (self._folder / name).read_text() for name in _CERTIFICATES}

    def _state(self) -> JobState:
        try:
            if not self._live.meshes:
                self._watch()
                job_gateway.join(self._gateway, self._folder)
                self._live.meshes = job_gateway.meshes_of(self._addresses())
        except BaseException:
            if not self._has_been_reached:
                self._end_quietly()
                self._status = "not_running"
            raise
        self._has_been_reached = True
        if self._spec.is_kept:
            process_end.disarm(self)
        return JobState(dict(self._live.meshes))

    def _requires_sidecar_gateway(self) -> bool:
        return True

    def _prepare_client_gateway(self) -> None:
        job_gateway.join(self._gateway, self._folder)

    def _cleanup_log_context(self) -> dict[str, Any]:
        return {"job_type": type(self).__name__, "cluster_name": self.cluster_name}

    @property
    def _gateway(self) -> str:
        """The head's worker as it is reached from here."""
        if not self._live.gateway:
            head = (self._workers[0].address, self._spec.monarch_port)
            found = way_to(head, self._spec.reach, self._folder, self._cluster.ssh_access)
            self._live.gateway, self._live.tunnel = found
            how = "by ssh" if self._live.tunnel else "directly"
            log.info("cluster %s: reached %s", self.cluster_name, how)
        return self._live.gateway

    def _watch(self) -> None:
        """Have an error raised where Monarch would wait for lost workers for ever."""
        if self._live.watch is None:
            gateway, tunnel = self._gateway, self._live.tunnel
            host, port = self._workers[0].address, self._spec.monarch_port
            self._live.watch = LossWatch(
                f"cluster {self.cluster_name}",
                {gateway: tunnel.look if tunnel else PortLook(host, port)},
                LossAlarm(),
                hint=f"The workers' output: sky logs {self.cluster_name}",
            )

    def _addresses(self) -> dict[str, list[str]]:
        """Return the addresses of each mesh's workers, dealt in rank order."""
        ranks = iter(self._workers)
        return {
            name: [self._address(next(ranks)) for _ in range(size)]
            for name, size in self._spec.meshes.items()
        }

    def _address(self, worker: Worker) -> str:
        service = runner_config.service_id(self._attempt_id, worker.rank)
        return f"service<{service}>@tls://{worker.address}:{self._spec.monarch_port}"

    def _kill(self) -> None:
        self._end()

    def _end(self) -> None:
        """Terminate the cluster and release everything. NotTakenDownError: it may be there."""
        watch = self._live.watch
        if watch is not None:
            watch.close()
        with process_end.undisturbed():
            if watch is None or watch.error is None:
                job_gateway.stop(self._live.meshes)
            request = self._cluster.ask_for_end()
        self._cluster.wait_for_end(request)
        process_end.disarm(self)
        self._let_go()

    def _end_quietly(self) -> None:
        """End as `_end` does, but only log its error: another one is being raised."""
        try:
            self._end()
        except SkyPilotJobError as error:
            log.error("%s", error)

    def _let_go(self) -> None:
        live, self._live = self._live, _Live()
        if live.watch is not None:
            live.watch.close()
        if live.tunnel is not None:
            live.tunnel.close()
        if live.cluster is not None:
            live.cluster.close()
        if live.folder is not None:
            live.folder.remove()

    @property
    def _cluster(self) -> JobCluster:
        if self._live.cluster is None:
            self._live.cluster = JobCluster(self.cluster_name, self._spec)
        return self._live.cluster

    @property
    def _folder(self) -> Path:
        """The folder of this process, with the job's certificates."""
        if self._live.folder is None:
            sweep()
            self._live.folder = PrivateFolder()
            for name, text in self._certificates.items():
                (self._live.folder.path / name).write_text(text)
        return self._live.folder.path
