"""Laying out a node, as far as it needs no backend."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.backends.local.folders import ClusterFolder
from jobs.backends.local.nodes import LONGEST_TMP, link_tmp, short_tmp


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the layout of an ordinary user's portal, in a home whose paths are long."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return SimpleNamespace(uid=None, folder=ClusterFolder(tmp_path / ("x" * LONGEST_TMP)))


def test_a_long_path_gets_a_short_name_once(layout: Any) -> None:
    for _ in range(2):
        link_tmp(layout, 0)
    assert short_tmp(layout.folder, 0).readlink() == layout.folder.node(0).tmp


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link another user's")
def test_a_link_that_another_user_put_there_is_not_used(layout: Any, tmp_path: Path) -> None:
    link = short_tmp(layout.folder, 0)
    link.symlink_to(tmp_path)
    os.lchown(link, 65534, 65534)
    with pytest.raises(FileExistsError):
        link_tmp(layout, 0)
