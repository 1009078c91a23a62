"""Share PostgreSQL: a worker uses the server of the process that started it, others their own."""

from __future__ import annotations

import os
from pathlib import Path

from tests.embedded_servers import RUN, _owners_directory


def test_only_a_worker_uses_the_server_of_the_process_that_started_it(monkeypatch, tmp_path: Path):
    monkeypatch.setenv(RUN, f"{os.getppid()} {tmp_path}")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert _owners_directory() == tmp_path
    # A process that a test has started inherits both variables.
    monkeypatch.setenv(RUN, f"{os.getpid()} {tmp_path}")
    assert _owners_directory() is None
    monkeypatch.setenv(RUN, f"{os.getppid()} {tmp_path}")
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    assert _owners_directory() is None
    monkeypatch.delenv(RUN)
    assert _owners_directory() is None
