"""A stub with a state of its own for each test, called with SkyPilot's real client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from monarch_client.skypilot.errors import SkyPilotError
from tests.sky_stub.process import StubProcess, free_port

TOKEN = "sky_secret-of-the-stub"
PATIENCE_S = 60.0


class Sky:
    """SkyPilot's real client, called as a portal calls it."""

    def __init__(self, caller: SkyCaller, folder: Path) -> None:
        self._caller = caller
        self._folder = folder

    def ask(self, name: str, /, **args: Any) -> Any:
        """Return one call's answer."""
        return self._caller.call(name, args, PATIENCE_S)

    def do(self, name: str, /, **args: Any) -> Any:
        """Return the result of the request that a call makes."""
        return self.ask("result", request_id=self.ask(name, **args))

    def launch(self, cluster: str, run: str, nodes: int = 1, **more: Any) -> int:
        """Launch a task and give back its job's number."""
        return int(self.do("launch", cluster_name=cluster, task=task(run, nodes, **more))["job_id"])

    def log(self, cluster: str, job: int, tail: int = 0) -> str:
        """Return a job's whole log as it streams."""
        with self._caller.stream(
            "read_log", {"cluster_name": cluster, "job_id": job, "tail": tail}
        ) as stream:
            return "".join(iter(lambda: stream.get(PATIENCE_S), None))

    def log_now(self, cluster: str, job: int) -> str:
        """Return what a job's log holds already."""
        args = {"cluster_name": cluster, "job_id": job, "follow": False}
        with self._caller.stream("read_log", args) as stream:
            return "".join(iter(lambda: stream.get(PATIENCE_S), None))

    def status_of(self, cluster: str) -> str | None:
        """Return a cluster's status; None if there is none of this name."""
        found = self.ask("status", names=[cluster])
        return found[0]["status"] if found else None

    def job_status(self, cluster: str, job: int) -> str:
        """Return a job's status."""
        found = {each["job_id"]: each["status"] for each in self.ask("jobs", cluster_name=cluster)}
        return str(found[job])

    def bill(self, cluster: str) -> Mapping[str, Any]:
        """Return the cost of a cluster."""
        return next(row for row in self.ask("cost_report") if row["name"] == cluster)

    def folder(self, **files: str) -> str:
        """Create a folder with these files, to be a task's workdir."""
        self._folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (self._folder / name).write_text(text)
        return str(self._folder)


def task(run: str, nodes: int = 1, **more: Any) -> dict[str, Any]:
    """Return a task that runs `run` on every node."""
    resources = {"infra": "slurm/stub/all", **more.pop("resources", {})}
    return {"name": "mp-1", "num_nodes": nodes, "run": run, "resources": resources, **more}


def refusal(ask: Callable[..., Any], name: str, /, **args: Any) -> SkyPilotError:
    """Return the error with which `sky.ask` or `sky.do` ends."""
    with pytest.raises(SkyPilotError) as caught:
        ask(name, **args)
    return caught.value


@pytest.fixture(scope="session")
def port() -> int:
    return free_port()


@pytest.fixture(scope="session")
def caller(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkyCaller]:
    """Yield one caller for all tests: importing SkyPilot takes seconds."""
    home = tmp_path_factory.mktemp("sky-home")
    caller = SkyCaller(CallerOptions(home=home, endpoint=f"http://127.0.0.1:{port}", token=TOKEN))
    yield caller
    caller.close()


@pytest.fixture
def stub(port: int, tmp_path: Path) -> Iterator[StubProcess]:
    stub = StubProcess(tmp_path / "stub", TOKEN, port)
    yield stub
    stub.close()


@pytest.fixture
def sky(caller: SkyCaller, stub: StubProcess, tmp_path: Path) -> Sky:
    return Sky(caller, tmp_path / "workdir")
