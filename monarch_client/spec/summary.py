"""The size of a submission, in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from monarch_client.spec.array_keys import count_of
from monarch_client.spec.job_spec import JobSpec


def summary_of(specs: Sequence[JobSpec]) -> str:
    """Return the size of a job, such as "2 nodes, array of 12 jobs, 4 at a time".

    Of several specifications, return the number of their jobs.
    """
    if len(specs) != 1:
        return f"{number_of_jobs(specs):,} jobs of {len(specs)} specifications"
    [spec] = specs
    parts = [f"{spec.num_nodes} node{'s' if spec.num_nodes > 1 else ''}"]
    if spec.is_monarch:
        meshes = (f"{name} {size}" for name, size in spec.portal.meshes.items())
        parts += ["Monarch job", f"meshes: {', '.join(meshes)}"]
    if spec.portal.array:
        count, at_once = count_of(spec.portal.array), spec.portal.max_parallel
        parts.append(f"array of {count:,} job{'s' if count > 1 else ''}")
        parts += [f"{at_once:,} at a time"] if at_once is not None and at_once < count else []
    return ", ".join(parts)


def number_of_jobs(specs: Sequence[JobSpec]) -> int:
    """Return the number of jobs of the specifications, those of arrays included."""
    return sum(count_of(spec.portal.array) for spec in specs)
