"""The files of a fake backend, which several processes share."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from jobs.backends.fake_state import FakeCluster, FakePlan
from jobs.errors import BackendError


class FakeStore:
    """Plans and clusters as JSON. Plans belong to job names; `calls` tells what was asked."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        self.carrier: Literal["push", "pull", "either"] = "push"
        if (directory / "pulled").exists():
            self.carrier = "pull"
        elif (directory / "either").exists():
            self.carrier = "either"
        for name in ("clusters", "plans", "bills"):
            (directory / name).mkdir(parents=True, exist_ok=True)

    def set_plan(self, plan: FakePlan, job_name: str = "") -> None:
        """From now on attempts of jobs called `job_name` (or of all others) live by `plan`."""
        self._write(self._directory / "plans" / f"{job_name or '*'}.json", asdict(plan))

    def be_pulled(self) -> None:
        """From now on, in every process: let the portal fetch the frames."""
        (self._directory / "pulled").touch()
        self.carrier = "pull"

    def be_either(self) -> None:
        """From now on, in every process: let each attempt's nodes push, or not."""
        (self._directory / "either").touch()
        self.carrier = "either"

    def calls(self) -> list[tuple[str, str]]:
        """Every (verb, cluster name) asked for so far, by anybody; looks are not counted."""
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
        return sorted(path.stem for path in (self._directory / "clusters").glob("*.json"))

    def _path(self, cluster_name: str) -> Path:
        return self._directory / "clusters" / f"{cluster_name}.json"

    def _find(self, cluster_name: str) -> FakeCluster | None:
        content = self._read(self._path(cluster_name))
        return None if content is None else FakeCluster.from_dict(content)

    def _cluster(self, cluster_name: str) -> FakeCluster:
        cluster = self._find(cluster_name)
        if cluster is None:
            raise BackendError(f"There is no cluster {cluster_name}.")
        return cluster

    def _store(self, cluster_name: str, cluster: FakeCluster) -> None:
        self._write(self._path(cluster_name), asdict(cluster))

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
            fcntl.flock(calls, fcntl.LOCK_EX)
            calls.write(json.dumps([verb, cluster_name]) + "\n")
            calls.flush()
            yield
