"""Programs of users of RemoteJob."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import RunProgram, runner_in


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """Run a program to its end; the words of its `say`."""
    return runner_in(tmp_path)
