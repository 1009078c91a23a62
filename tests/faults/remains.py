"""The remains of a job: rows, directories, leases, processes, ports. There must be none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg

from jobs.backends.local.processes import processes_marked, processes_of_uid
from jobs.backends.local.slots import FIRST_UID
from jobs.backends.registry import LEASES_OF_ROOT
from tests.faults.victims import PROC, all_pids, read
from tests.portal_process import PortalProcess

_CLUSTERS = """
SELECT cluster.name, cluster.status,
       coalesce(array_agg(DISTINCT split_part(worker.address, ':', 1))
                FILTER (WHERE worker.address <> ''), '{}')
FROM jobs_cluster AS cluster
JOIN jobs_attempt AS attempt ON attempt.cluster_id = cluster.id
LEFT JOIN jobs_worker AS worker ON worker.attempt_id = attempt.id
WHERE attempt.job_id = %s
GROUP BY cluster.name, cluster.status
"""
_LISTENING = "0A"


def remains_of(portal: PortalProcess, job: int) -> list[str]:
    """Describe everything that is left of a job."""
    local = portal.home.path / "local"
    found: list[str] = []
    with psycopg.connect(portal.home.postgres.url(), connect_timeout=5) as database:
        clusters = database.execute(_CLUSTERS, [job]).fetchall()
    for name, status, addresses in clusters:
        if status != "GONE":
            found.append(f"cluster {name} is {status}")
        found += _on_disk(local, name)
        found += _processes(local / name, name, addresses)
        found += [f"{address} is listened on" for address in _listened_on(addresses)]
    return found


def _on_disk(local: Path, name: str) -> Iterator[str]:
    if (local / name).exists():
        yield f"directory {local / name}"
    leases = LEASES_OF_ROOT if os.geteuid() == 0 else local / "slots"
    for path in leases.glob("[0-9]*"):
        with suppress(FileNotFoundError, ValueError):
            if json.loads(path.read_text())["cluster"] == str(local / name):
                yield f"lease {path.name} of {name}"


def _processes(folder: Path, name: str, addresses: list[str]) -> Iterator[str]:
    below = os.fsencode(folder)
    yield from (f"process {each.pid} is marked {name}" for each in processes_marked(name))
    for pid in all_pids():
        if below in read(pid, "cmdline"):
            yield f"process {pid} runs in {folder}"
    if os.geteuid() == 0:
        for uid in {_uid_of(address) for address in addresses}:
            yield from (f"process {each.pid} has user id {uid}" for each in processes_of_uid(uid))


def _uid_of(address: str) -> int:
    """Return the user id that is leased together with a loopback network (`SlotLeases`)."""
    _, high, low, _ = map(int, address.split("."))
    return FIRST_UID + (high - 64) * 250 + low - 1


def _listened_on(addresses: list[str]) -> set[str]:
    listening = set()
    for line in (PROC / "net/tcp").read_text().splitlines()[1:]:
        _, local, _, state = line.split()[:4]
        if state == _LISTENING:
            octets = bytes.fromhex(local.partition(":")[0])[::-1]
            listening.add(".".join(map(str, octets)))
    return listening & set(addresses)
