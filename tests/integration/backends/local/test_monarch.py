"""A real Monarch job on the local backend: workers over TLS, under users of their own."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from jobs.backends.base import UploadSource
from jobs.backends.local import ports as local_ports
from monarch_client.spec import JobSpec
from monarch_client.sync.archive import pack
from tests.integration.backends.rigs import LocalRig

EXAMPLE = Path(__file__).parents[4] / "examples" / "hello_mesh"


@pytest.mark.monarch
def test_monarch_writes_its_own_log_into_the_jobs_own_files(
    local: LocalRig, private_mounts: bool
) -> None:
    if not private_mounts:
        pytest.skip("needs root and private mounts")
    driver = "from mportal_runtime import meshes; meshes.workers"
    spec = JobSpec.parse({"run": f'python -c "{driver}"', "portal": {"meshes": {"workers": 1}}})
    request = local.request_spec(spec.to_dict(), 1)
    local.backend.launch(request)
    assert local.ingest.end["reason"] == "COMPLETED"
    user = f"job{local.uid(request.cluster_name)}"
    tmp = local.path(request.cluster_name) / "rank-0" / "tmp"
    logs = [file.name for file in (tmp / user).iterdir()]
    assert logs == [f"monarch_log_mportal_{request.attempt_id}_0.log"]
    assert not (tmp / "unknown").exists()


@pytest.mark.monarch
def test_the_example_runs_on_workers_of_its_own(local: LocalRig, tmp_path: Path) -> None:
    packed = pack(EXAMPLE, tmp_path / "example.tar.gz")
    local.uploads[packed.reference] = packed.path
    content = yaml.safe_load((EXAMPLE / "job.yaml").read_text())
    spec = JobSpec.parse({**content, "workdir": packed.reference})
    request = local.request_spec(spec.to_dict(), spec.num_nodes)
    local.backend.launch(replace(request, uploads=(UploadSource(packed.reference, "workdir"),)))
    assert (local.ingest.end["reason"], local.ingest.end["exit_code"]) == ("COMPLETED", 0)
    addresses = {node.address for node in local.backend.observe(request.cluster_name).nodes}
    workers = [frame for frame in local.ingest.of_kind("worker") if frame["status"] == "READY"]
    assert {frame["address"].partition(":")[0] for frame in workers} == addresses


@pytest.mark.monarch
def test_workers_listen_on_another_port_where_a_program_has_the_default_one(
    local: LocalRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        port = listener.getsockname()[1]
        monkeypatch.setattr(local_ports, "DEFAULT_PORT", port)
        driver = "from mportal_runtime import meshes; meshes.workers"
        portal = {"meshes": {"workers": 2}, "port": port}
        spec = JobSpec.parse({"num_nodes": 2, "run": f'python -c "{driver}"', "portal": portal})
        local.backend.launch(local.request_spec(spec.to_dict(), 2))
        assert local.ingest.end["reason"] == "COMPLETED"
    workers = [frame for frame in local.ingest.of_kind("worker") if frame["status"] == "READY"]
    ports = {frame["address"].rpartition(":")[2] for frame in workers}
    assert len(ports) == 1
    assert ports != {str(port)}
