"""A pytest plugin: slices of a suite (`--slice`, `--since`), and feature ids in the reports."""

from __future__ import annotations

import pytest

from tests.suites.selection import SLICES, Candidate, change_since, is_below, select
from tests.suites.slow import SLOW


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that `.ci/run` passes on."""
    group = parser.getgroup("slices")
    group.addoption(
        "--slice", metavar="N,...", help=f"run these slices of {SLICES} (from 0), or all"
    )
    group.addoption("--since", metavar="COMMIT", help="and what has been touched since a commit")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a slice that no test is in: the run would pass without having tested anything."""
    wanted = config.getoption("slice") or "all"
    if not set(str(wanted).split(",")) <= {"all", *map(str, range(SLICES))}:
        raise pytest.UsageError(f"--slice takes numbers from 0 to {SLICES - 1}, or all: {wanted}")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that `make slow` runs."""
    file = item.nodeid.split("::", 1)[0]
    if any(is_below(file, path) for path in SLOW):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop the tests of other slices; copy feature ids to where JUnit files take them from."""
    _drop_other_slices(config, items)
    for item in items:
        for mark in item.iter_markers("feature"):
            item.user_properties.extend(("feature", feature_id) for feature_id in mark.args)


def _drop_other_slices(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted, since = config.getoption("slice"), config.getoption("since")
    if wanted in {None, "all"}:
        return
    slices = frozenset(int(number) for number in str(wanted).split(","))
    tests = [
        Candidate(
            item.nodeid,
            is_smoke=item.get_closest_marker("smoke") is not None,
            stays_together=item.get_closest_marker("together") is not None,
        )
        for item in items
    ]
    chosen = select(tests, slices, change_since(str(since)) if since else None)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]
