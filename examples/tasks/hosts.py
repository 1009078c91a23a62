"""The hosts of an example: this machine, or a mesh of the job that runs it."""

from __future__ import annotations

import argparse

from monarch_client.context import JobContext


def options(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that chooses the hosts."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--mesh", help="a mesh of this job; without it, this machine")
    return parser


def open_context(mesh: str | None) -> JobContext:
    """Open a context on a mesh of this job, or on this machine."""
    if mesh is None:
        return JobContext()
    from mportal_runtime import meshes  # noqa: PLC0415 - only jobs of the portal have it

    return JobContext(getattr(meshes, mesh))
