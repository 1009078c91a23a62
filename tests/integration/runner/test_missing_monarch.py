"""Monarch jobs on nodes that lack torchmonarch: it is installed, once, on top of what they have."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.skypilot_nodes import SkyPilotJob, SkyPilotNodes

MakeNodes = Callable[..., SkyPilotNodes]
VERSION = "0.7.0"
# What a worker needs of Monarch: it listens, until it is killed.
ACTOR = """
import re, socket, time
def run_worker_loop_until_shutdown(ca, address):
    host, port = re.search("//(.*):(.*)", address).groups()
    server = socket.create_server((host, int(port)))
    while True:
        server.accept()[0].close()
"""
DRIVER = "python3 -c 'import monarch.actor, installed_by_setup, sys; print(sys.prefix)'"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a Python with only pip; return the directory of its programs."""
    root = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
    return root / "bin"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Make a folder with a torchmonarch that pip can install."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = f"torchmonarch-{VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: torchmonarch\nVersion: {VERSION}\n"
    files = {
        "monarch/__init__.py": b"",
        "monarch/actor.py": ACTOR.encode(),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},{digest(content)},{len(content)}\n" for name, content in files.items()
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(folder / f"torchmonarch-{VERSION}-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return folder


def digest(content: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def job_on(nodes: SkyPilotNodes, python: Path, index: Path, **settings: object) -> SkyPilotJob:
    """Return a Monarch job on all nodes, whose setup installs a module of its own."""
    setup = (
        "python3 -c 'import sysconfig, pathlib; "
        'pathlib.Path(sysconfig.get_paths()["purelib"], "installed_by_setup.py").touch()\''
    )
    job = nodes.job(
        **{
            "setup": setup,
            "run": DRIVER,
            "meshes": {"all": len(nodes.homes)},
            "torchmonarch": VERSION,
            **settings,
        }
    )
    job.path = [str(python), "/usr/bin", "/bin"]
    job.environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index), PIP_NO_CACHE_DIR="1")
    return job


def test_it_is_installed_where_it_is_missing_and_found_by_the_next(
    make_nodes: MakeNodes, bare_python: Path, index: Path
) -> None:
    # Both nodes install into the same home: one after the other.
    nodes = make_nodes(2, shared_home=True)
    first = job_on(nodes, bare_python, index)
    assert first.run()["reason"] == "COMPLETED"
    said = [line for rank in range(2) for line in first.ingest.texts("setup", rank)]
    assert sum(f"installing {VERSION} into" in line for line in said) == 1
    (prefix,) = first.ingest.texts("stdout", 0)
    assert prefix.startswith(str(nodes.homes[0] / ".mportal" / "venvs" / VERSION))
    second = job_on(nodes, bare_python, index)
    assert second.run()["reason"] == "COMPLETED"
    assert second.ingest.texts("setup") == []
    assert second.ingest.texts("stdout", 0) == [prefix]


def test_a_node_that_has_it_gets_no_second_one(make_nodes: MakeNodes) -> None:
    nodes = make_nodes(1)
    job = nodes.job(run="python3 -c 'import monarch'", meshes={"all": 1}, torchmonarch=VERSION)
    assert job.run()["reason"] == "COMPLETED"
    assert not (nodes.homes[0] / ".mportal" / "venvs").exists()


def test_a_plain_job_never_gets_one(make_nodes: MakeNodes, bare_python: Path, index: Path) -> None:
    nodes = make_nodes(1)
    job = job_on(nodes, bare_python, index, meshes=None, run="true")
    assert job.run()["reason"] == "COMPLETED"
    assert not (nodes.homes[0] / ".mportal" / "venvs").exists()


def test_what_cannot_be_installed_is_reported_with_the_fix(
    make_nodes: MakeNodes, bare_python: Path, index: Path
) -> None:
    nodes = make_nodes(1)
    job = job_on(nodes, bare_python, index, torchmonarch="0.0.9")
    end = job.run()
    assert end["reason"] == "SETUP"
    assert end["message"].startswith("torchmonarch 0.0.9 is missing on rank 0 (127.")
    assert "No matching distribution found" in end["message"]
    assert "pip install torchmonarch==0.0.9" in end["hint"]
    assert any("No matching distribution" in line for line in job.ingest.texts("setup"))
    # A half-made environment is not taken for a whole one.
    assert job_on(nodes, bare_python, index, torchmonarch="0.0.9").run()["reason"] == "SETUP"
