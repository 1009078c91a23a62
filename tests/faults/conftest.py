"""Every test below this folder is a fault test: `make faults` runs them, `make test` does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.ground import Ground

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.faults)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need root without it; fail them in a run that decides about a change."""
    needs_root = item.get_closest_marker("root")
    if needs_root is None or os.geteuid() == 0:
        return
    what = f"needs root: {needs_root.args[0]}"
    if "MPORTAL_CI_RUN" in os.environ:
        pytest.fail(f"This {what}. Run .ci/run as root.", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """Provide a portal for the crash matrix, shared by the cells of one file."""
    made = Ground()
    try:
        yield made
    finally:
        made.close()
