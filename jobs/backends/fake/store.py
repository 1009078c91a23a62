"""The files of a fake backend, which several processes share.

Clusters are rows of an SQLite file: of thousands, those that take room are counted at each launch.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from jobs.backends.fake.state import FakeCluster, FakePlan
from jobs.backends.file_locks import lock_in_time
from jobs.errors import BackendError, BackendUnavailableError

_TABLE = """
CREATE TABLE IF NOT EXISTS clusters (
    name TEXT PRIMARY KEY, nodes INTEGER, off_at REAL, content TEXT
);
CREATE INDEX IF NOT EXISTS room ON clusters (off_at, nodes);
"""
_FIND = "SELECT content FROM clusters WHERE name = ?"
_STORE = "INSERT OR REPLACE INTO clusters VALUES (?, ?, ?, ?)"
_NODES_ON = "SELECT coalesce(sum(nodes), 0) FROM clusters WHERE off_at IS NULL OR off_at > ?"
_BUSY_LIMIT_S = 60.0


class FakeStore:
    """A store of plans and clusters as JSON. Plans belong to job names; `calls` lists requests."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        self.carrier: Literal["push", "pull", "either"] = "push"
        if (directory / "pulled").exists():
            self.carrier = "pull"
        elif (directory / "either").exists():
            self.carrier = "either"
        self._clusters = directory / "clusters.db"
        for name in ("plans", "bills"):
            (directory / name).mkdir(parents=True, exist_ok=True)

    def set_plan(self, plan: FakePlan, job_name: str = "") -> None:
        """Apply `plan` from now on to attempts of jobs called `job_name`, or of all other jobs."""
        self._write(self._directory / "plans" / f"{job_name or '*'}.json", asdict(plan))

    def be_pulled(self) -> None:
        """Let the portal fetch the frames from now on, in every process."""
        (self._directory / "pulled").touch()
        self.carrier = "pull"

    def be_either(self) -> None:
        """Let each attempt's nodes push, or not, from now on, in every process."""
        (self._directory / "either").touch()
        self.carrier = "either"

    def calls(self) -> list[tuple[str, str]]:
        """List every (verb, cluster name) requested so far; observations are left out."""
        try:
            text = (self._directory / "calls.ndjson").read_text()
        except FileNotFoundError:
            return []
        return [(verb, name) for verb, name in map(json.loads, text.splitlines())]

    def _plan_for(self, job_name: str) -> FakePlan:
        plans = self._directory / "plans"
        content = self._read(plans / f"{job_name}.json") or self._read(plans / "*.json")
        return FakePlan.from_dict(content) if content else FakePlan()

    def _setting(self, name: str, default: Any) -> Any:
        content = self._read(self._directory / f"{name}.json")
        return default if content is None else content[name]

    def _set(self, name: str, value: Any) -> None:
        self._write(self._directory / f"{name}.json", {name: value})

    def _names(self) -> list[str]:
        return [name for (name,) in self._rows("SELECT name FROM clusters ORDER BY name")]

    def _nodes_on(self, now: float) -> int:
        """Count the nodes of all clusters whose machines are not switched off."""
        [(nodes,)] = self._rows(_NODES_ON, now)
        return int(nodes)

    def _find(self, cluster_name: str) -> FakeCluster | None:
        rows = self._rows(_FIND, cluster_name)
        return FakeCluster.from_dict(json.loads(rows[0][0])) if rows else None

    def _cluster(self, cluster_name: str) -> FakeCluster:
        cluster = self._find(cluster_name)
        if cluster is None:
            raise BackendError(f"There is no cluster {cluster_name}.")
        return cluster

    def _read_now(self, cluster_name: str) -> tuple[FakeCluster, float]:
        """Return a cluster and the time: what `_change_now` changes is before or after both."""
        with self._transaction("BEGIN") as file:
            return self._cluster_in(file, cluster_name), self._clock()

    def _change_now(
        self, cluster_name: str, change: Callable[[FakeCluster, float], FakeCluster]
    ) -> None:
        """Replace a cluster by what `change` makes of it and of the time."""
        # No reader in between: it would see a run go on that has ended by the time it sees.
        with self._transaction("BEGIN EXCLUSIVE") as file:
            cluster = change(self._cluster_in(file, cluster_name), self._clock())
            file.execute(_STORE, _row(cluster_name, cluster))

    def _store(self, cluster_name: str, cluster: FakeCluster) -> None:
        self._rows(_STORE, *_row(cluster_name, cluster))

    def _forget(self, cluster_name: str) -> None:
        self._rows("DELETE FROM clusters WHERE name = ?", cluster_name)

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        """Run one statement, each over a connection of its own: it is asked from many threads.

        BackendUnavailableError: another process holds the file for too long.
        """
        try:
            return self._answer(statement, values)
        except sqlite3.OperationalError as error:
            raise BackendUnavailableError(f"The file of the fake clusters: {error}") from error

    def _answer(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._opened() as file:
            try:
                return file.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
            file.executescript(_TABLE)
            return file.execute(statement, values).fetchall()

    def _cluster_in(self, file: sqlite3.Connection, cluster_name: str) -> FakeCluster:
        try:
            rows = file.execute(_FIND, (cluster_name,)).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            rows = []
        if not rows:
            raise BackendError(f"There is no cluster {cluster_name}.")
        return FakeCluster.from_dict(json.loads(rows[0][0]))

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            with self._opened() as file:
                file.execute(begin)
                yield file
                file.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise BackendUnavailableError(f"The file of the fake clusters: {error}") from error

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        opened = sqlite3.connect(self._clusters, timeout=_BUSY_LIMIT_S, isolation_level=None)
        with closing(opened) as file:
            # What a power cut would lose is of no use after it.
            file.execute("PRAGMA synchronous = OFF")
            yield file

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        return content

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(content))
        draft.replace(path)

    @contextmanager
    def _locked(self, verb: str, cluster_name: str) -> Iterator[None]:
        with (self._directory / "calls.ndjson").open("a") as calls:
            if not lock_in_time(calls.fileno(), _BUSY_LIMIT_S):
                raise BackendUnavailableError("Another process keeps the fake clusters locked.")
            calls.write(json.dumps([verb, cluster_name]) + "\n")
            calls.flush()
            yield


def _row(cluster_name: str, cluster: FakeCluster) -> tuple[str, int, float | None, str]:
    return cluster_name, cluster.num_nodes, cluster.off_at, json.dumps(asdict(cluster))
