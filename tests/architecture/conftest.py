"""Fixtures of the rules: Python does not search half a million syntax nodes for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.architecture import source


@pytest.fixture(scope="package", autouse=True)
def paused_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector while rules run: their objects are few or long-lived."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def syntax_trees() -> Iterator[None]:
    """Release the trees at the end of the run, before pytest's own search for garbage."""
    yield
    for read in (source.functions_of, source.nodes_of, source.tree_of):
        read.cache_clear()
