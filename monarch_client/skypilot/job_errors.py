"""The errors of a SkyPilotJob. Imports neither sky nor monarch.

SkyPilotJobError          all of them
  ClusterError            SkyPilot did not give the machines; `kind` as in `skypilot.errors.KINDS`
  WorkersError            the machines are there, the workers did not come; `reason`, `log`
  PythonMismatchError     this Python's minor version is not the workers'
  UnreachableError        neither directly nor by ssh is there a way to the workers
  MonarchInUseError       this process uses Monarch in another way already
  CacheError              a cache file that can't be used for this job, or must not be
  NotTakenDownError       the cluster may still be there, and cost; says what to type
"""

from __future__ import annotations

from collections.abc import Sequence

from monarch_client.skypilot.errors import SkyPilotError

LAST_LINES = 15


class SkyPilotJobError(RuntimeError):
    """An error of a SkyPilotJob; the text says what to do."""


class ClusterError(SkyPilotJobError):
    """SkyPilot did not give the machines. `kind` is one of `skypilot.errors.KINDS`."""

    def __init__(self, cluster: str, error: SkyPilotError) -> None:
        self.kind = error.kind
        self.reasons = [str(each) for each in error.detail.get("reasons", ())]
        lines = [f"SkyPilot could not provide cluster {cluster} ({error.kind}): {error.message}"]
        super().__init__("\n  ".join([*lines, *self.reasons]))


class ClusterExistsError(ClusterError):
    """A cluster of that name exists, perhaps another user's: it is not touched."""

    def __init__(self, cluster: str, status: str, user: str) -> None:
        owner = f", of {user}" if user else ""
        message = (
            f"a cluster of this name exists ({status}{owner}). Choose another cluster_name, or "
            f"take it down: sky down {cluster}"
        )
        super().__init__(cluster, SkyPilotError("mismatch", message))


class WorkersError(SkyPilotJobError):
    """The workers did not come, or not in time.

    `reason` is the runner's, such as SETUP or WORKER_NEVER_READY; "" if it reported none.
    `log` has the last lines of the job.
    """

    def __init__(self, message: str, reason: str = "", log: Sequence[str] = ()) -> None:
        self.reason = reason
        self.log = list(log)[-LAST_LINES:]
        tail = "\n  ".join(["\nThe last lines of its log:", *self.log]) if self.log else ""
        super().__init__(message + tail)


class PythonMismatchError(SkyPilotJobError):
    """A minor version of Python that differs from the workers'; Monarch would crash."""

    def __init__(self, here: str, workers: Sequence[str]) -> None:
        there = ", ".join(workers)
        super().__init__(
            f"This program runs Python {here}, the workers run {there}. Use an image (image_id in "
            f"resources) or a python_exe with Python {here}, or run this program with {there}."
        )


class UnreachableError(SkyPilotJobError):
    """The workers cannot be reached."""


class MonarchInUseError(SkyPilotJobError):
    """A second use of Monarch's client, of which a process has only one."""


class CacheError(SkyPilotJobError):
    """A cache file that can't be used for this job, or must not be."""


class NotTakenDownError(SkyPilotJobError):
    """SkyPilot could not be reached, or failed, to terminate the cluster."""

    def __init__(self, cluster: str, why: str) -> None:
        super().__init__(
            f"Cluster {cluster} may still be there, and cost: {why} Type: sky down {cluster}"
        )
