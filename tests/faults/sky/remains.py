"""The remains of a job on SkyPilot's machines: rows, clusters, processes, staged folders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import psycopg

from tests.portal_process import PortalProcess
from tests.sky_stub import processes
from tests.sky_stub.process import StubProcess

_CLUSTERS = """
SELECT DISTINCT cluster.name, cluster.status FROM jobs_cluster AS cluster
JOIN jobs_attempt AS attempt ON attempt.cluster_id = cluster.id
WHERE attempt.job_id = %s
"""


def remains_of(portal: PortalProcess, stub: StubProcess, job: int) -> list[str]:
    """Describe everything that is left of a job, and the forbidden states of its machines."""
    with psycopg.connect(portal.home.postgres.url(), connect_timeout=5) as database:
        clusters = database.execute(_CLUSTERS, [job]).fetchall()
    found = [f"cluster {name} is {status}" for name, status in clusters if status != "GONE"]
    for name, _ in clusters:
        found += _of_cluster(portal, stub, name)
    return [*found, *_at_one_time(stub, {name for name, _ in clusters})]


def _of_cluster(portal: PortalProcess, stub: StubProcess, name: str) -> Iterator[str]:
    staged = portal.home.path / "skypilot" / "staging" / name
    for path in (staged, stub.cloud.folder(name)):
        if path.exists():
            yield f"directory {path}"
    for pid in processes.marked(processes.NODE_MARK, stub.cloud.folder(name)):
        yield f"process {pid} lives on {name}"


def _at_one_time(stub: StubProcess, names: set[str]) -> Iterator[str]:
    """Find clusters of one job, or incarnations of one cluster, that existed at the same time."""
    lives = [one for one in stub.witness.incarnations() if one.cluster in names]
    for one, other in combinations(lives, 2):
        if one.overlaps(other):
            yield f"{one.cluster} ({one.hash}) and {other.cluster} ({other.hash}) at one time"
    submitted = [
        (event["hash"], event["job_name"])
        for event in stub.witness.events("job_submitted")
        if event["cluster"] in names
    ]
    for each in sorted(set(submitted)):
        if submitted.count(each) > 1:
            yield f"{each} was submitted {submitted.count(each)} times"
