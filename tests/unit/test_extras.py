"""A package that is missing is named with the extra that has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from monarch_client.skypilot.caller import CallerOptions, SkyCaller, SkyPilotError

WITHOUT = """
import sys
from importlib import import_module
from monarch_client.cli.main import cli
from monarch_client.extras import EXTRAS
sys.modules.update(dict.fromkeys(EXTRAS))  # each import of them fails
for package, name in [("context", "JobContext"), ("gateway", "connect"),
                      ("gateway", "RemoteJob"), ("skypilot", "SkyPilotJob")]:
    try:
        getattr(import_module(f"monarch_client.{package}"), name)
    except ModuleNotFoundError as error:
        print(name, error)
cli(["ssh", "1"])
"""


def test_each_entry_point_names_the_extra_that_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    extra = "is missing: pip install 'monarch-portal[%s]'"
    assert done.stdout.splitlines() == [
        "JobContext The package cloudpickle " + extra % "context",
        "connect The package websockets " + extra % "gateway",
        "RemoteJob The package monarch " + extra % "monarch",
        "SkyPilotJob The package monarch " + extra % "monarch",
    ]
    assert done.stderr == "Error: The package websockets " + extra % "gateway" + "\n"


def test_a_missing_skypilot_is_named_by_the_process_that_would_call_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where it is not installed.
    (tmp_path / "sky.py").write_text("raise ModuleNotFoundError(name='sky')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    caller = SkyCaller(CallerOptions.of_user(sys.executable))
    try:
        with pytest.raises(SkyPilotError, match=r"pip install 'monarch-portal\[skypilot\]'"):
            caller.call("about", patience_s=60)
    finally:
        caller.close()
