"""Ray-like tasks, actors and objects on the hosts of a Monarch job.

Importing this package imports neither monarch nor the packages of the extra `context`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from monarch_client import extras as _extras

if TYPE_CHECKING:
    from monarch_client.context.cluster.base import ClusterContext as ClusterContext
    from monarch_client.context.cluster.base import JobInfo as JobInfo
    from monarch_client.context.cluster.base import JobStatus as JobStatus
    from monarch_client.context.cluster.local import LocalClusterContext as LocalClusterContext
    from monarch_client.context.cluster.portal import PortalClusterContext as PortalClusterContext
    from monarch_client.context.cluster.tpu import TpuRunConfig as TpuRunConfig
    from monarch_client.context.current import clear_job_context as clear_job_context
    from monarch_client.context.current import get_job_context as get_job_context
    from monarch_client.context.current import set_job_context as set_job_context
    from monarch_client.context.job_context import JobContext as JobContext
    from monarch_client.context.options import ActorOptions as ActorOptions
    from monarch_client.context.options import Lifetime as Lifetime
    from monarch_client.context.options import Resource as Resource
    from monarch_client.context.options import RuntimeEnv as RuntimeEnv
    from monarch_client.context.options import TaskOptions as TaskOptions
    from monarch_client.context.refs import ActorHandle as ActorHandle
    from monarch_client.context.refs import ObjectRef as ObjectRef

_MODULES = {
    "ActorHandle": "refs",
    "ActorOptions": "options",
    "ClusterContext": "cluster.base",
    "JobContext": "job_context",
    "JobInfo": "cluster.base",
    "JobStatus": "cluster.base",
    "Lifetime": "options",
    "LocalClusterContext": "cluster.local",
    "ObjectRef": "refs",
    "PortalClusterContext": "cluster.portal",
    "Resource": "options",
    "RuntimeEnv": "options",
    "TaskOptions": "options",
    "TpuRunConfig": "cluster.tpu",
    "clear_job_context": "current",
    "get_job_context": "current",
    "set_job_context": "current",
}
__all__ = [
    "ActorHandle",
    "ActorOptions",
    "ClusterContext",
    "JobContext",
    "JobInfo",
    "JobStatus",
    "Lifetime",
    "LocalClusterContext",
    "ObjectRef",
    "PortalClusterContext",
    "Resource",
    "RuntimeEnv",
    "TaskOptions",
    "TpuRunConfig",
    "clear_job_context",
    "get_job_context",
    "set_job_context",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        with _extras.named_extras():
            return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
