"""The answers of REST as dataclasses, for the portal and for its clients.

Readers return them, OpenAPI describes them, the client decodes them.

A field is declared here and nowhere else. The standard library and msgspec's annotations suffice;
`jobs.api.answers` writes these classes as JSON and `rest.decoding` reads them. A field that is
added to an answer gets a default, so that a client still reads a portal that lacks the field. The
default serves decoding alone: the portal sets every field.

A module is imported when it is first used as `wire.jobs`: a command needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from monarch_client.wire import (
        account,
        attempts,
        bulk,
        clusters,
        gateway,
        graph,
        jobs,
        logs,
        mesh,
        metrics,
        money,
        overview,
        page,
        problems,
        projects,
        queue,
        runs,
        schedules,
        stacks,
        tasks,
        templates,
        timeline,
        users,
        values,
        views,
    )

__all__ = [
    "account",
    "attempts",
    "bulk",
    "clusters",
    "gateway",
    "graph",
    "jobs",
    "logs",
    "mesh",
    "metrics",
    "money",
    "overview",
    "page",
    "problems",
    "projects",
    "queue",
    "runs",
    "schedules",
    "stacks",
    "tasks",
    "templates",
    "timeline",
    "users",
    "values",
    "views",
]


def __getattr__(name: str) -> ModuleType:
    """Import a module of the package. AttributeError if there is none of this name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
