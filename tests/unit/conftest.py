"""A configuration of a test's own, in place of that of the user who runs it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep a test from the configuration of the user who runs it; return the path of its own."""
    for name in ("MPORTAL_URL", "MPORTAL_TOKEN", "MPORTAL_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "mportal" / "config.toml"
