"""Ray-like tasks, actors and objects on the hosts of a Monarch job.

Importing this package imports neither monarch nor the packages of the extra `context`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "JobContext": "job_context",
    "Lifetime": "options",
    "ObjectRef": "refs",
    "Resource": "options",
    "RuntimeEnv": "options",
    "TaskOptions": "options",
    "clear_job_context": "current",
    "get_job_context": "current",
    "set_job_context": "current",
}
__all__ = [
    "ActorHandle",
    "ActorOptions",
    "JobContext",
    "Lifetime",
    "ObjectRef",
    "Resource",
    "RuntimeEnv",
    "TaskOptions",
    "clear_job_context",
    "get_job_context",
    "set_job_context",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
