"""The calls of a cluster context, and what they return."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from monarch_client.context.api import TaskApi
from monarch_client.context.cluster.tpu import TpuRunConfig
from monarch_client.context.errors import JobNotFoundError
from monarch_client.context.options import RuntimeEnv

T = TypeVar("T")


class JobStatus(str, enum.Enum):
    """The status of a job."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


@dataclass(frozen=True)
class JobInfo:
    """A job as lists show it. Times have a time zone."""

    id: str
    status: JobStatus
    submission_time: datetime
    start_time: datetime | None
    end_time: datetime | None


class ClusterContext(ABC):
    """Jobs that outlive the call that creates them: shell scripts, and functions on TPU slices."""

    @abstractmethod
    def create_job(self, entrypoint: str, env: RuntimeEnv | None = None) -> str:
        """Start a shell script as a job, and return the job's id."""

    @abstractmethod
    def list_jobs(self) -> list[JobInfo]:
        """List jobs, oldest first."""

    @abstractmethod
    def delete_job(self, job_id: str) -> None:
        """Stop a job; remove one that has ended, with its log. An unknown id is ignored."""

    @abstractmethod
    def get_job_logs(self, job_id: str) -> tuple[str, str]:
        """Return what a job has written to stdout and stderr. JobNotFoundError: unknown id."""

    @abstractmethod
    def run_on_tpu(
        self,
        fn: Callable[[TaskApi], T],
        config: TpuRunConfig,
        runtime_env: RuntimeEnv | None = None,
    ) -> list[T]:
        """Call `fn(context)` once on each host of TPU slices; return the results by rank.

        An error of `fn` is raised here. NoTpuError: there are no such slices.
        """


def not_found(job_id: str) -> JobNotFoundError:
    """Return the error of an unknown id."""
    return JobNotFoundError(f"There is no job {job_id!r}. list_jobs() returns those that exist.")
