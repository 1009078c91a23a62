"""A pytest plugin: keeps the last outcome of every test that shows a feature, a file a suite.

`make features` (tests/feature_table.py) turns the files into a table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / ".results" / "features"
PROPERTY = "feature"
# A test has three phases; the worst outcome is the test's.
SEVERITY = {"passed": 0, "skipped": 1, "failed": 2}

Outcomes = dict[str, dict[str, object]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Copy the ids to a property of the test, which reports carry from xdist's workers too."""
    for item in items:
        for mark in item.iter_markers("feature"):
            item.user_properties.extend((PROPERTY, feature_id) for feature_id in mark.args)


class Recorder:
    """Gathers outcomes while tests run and stores them when the session ends.

    `again`: it is a second look at tests that failed, which leaves out others of their functions.
    """

    def __init__(self, results: Path = RESULTS, root: Path = ROOT, *, again: bool = False) -> None:
        self.results = results
        self.root = root
        self.again = again
        self.suites: dict[str, Outcomes] = {}
        self.ran: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        suite = suite_of(report.nodeid)
        # Those without a mark as well: a test may have lost the mark it had.
        ran = report.nodeid if self.again else function_of(report.nodeid)
        self.ran.setdefault(suite, set()).add(ran)
        ids = sorted({str(value) for name, value in report.user_properties if name == PROPERTY})
        if not ids:
            return
        outcomes = self.suites.setdefault(suite, {})
        known = outcomes.get(report.nodeid)
        if known is None or SEVERITY[report.outcome] > SEVERITY[str(known["outcome"])]:
            outcomes[report.nodeid] = {"features": ids, "outcome": report.outcome}

    def pytest_sessionfinish(self) -> None:
        for suite, ran in self.ran.items():
            path = self.results / f"{suite}.json"
            if suite in self.suites or path.exists():
                store(path, self.suites.get(suite, {}), ran, self.root)


def pytest_configure(config: pytest.Config) -> None:
    """Record in the controlling process only: it sees the reports of every worker."""
    if not hasattr(config, "workerinput"):
        recorder = Recorder(again=bool(config.getoption("lf", default=False)))
        config.pluginmanager.register(recorder, "feature-recorder")


def suite_of(nodeid: str) -> str:
    """`unit` for tests/unit/...; the folder below `tests` names the suite."""
    parts = nodeid.split("::", 1)[0].split("/")
    return parts[1] if len(parts) > 2 else "other"


def store(path: Path, outcomes: Outcomes, ran: set[str], root: Path = ROOT) -> None:
    """Merge `outcomes` into the file: a narrow run must not forget what the others showed.

    What is known of the tests, or of all tests of the functions, that `ran` is replaced.
    """
    try:
        merged: Outcomes = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        merged = {}
    kept = {
        nodeid: outcome
        for nodeid, outcome in merged.items()
        if not {nodeid, function_of(nodeid)} & ran and still_exists(nodeid, root)
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**kept, **outcomes}, indent=1, sort_keys=True))


def function_of(nodeid: str) -> str:
    """The test without its parameters."""
    return nodeid.split("[", 1)[0]


def still_exists(nodeid: str, root: Path = ROOT) -> bool:
    """Whether the test's file still defines it: a deleted test shows nothing any more."""
    file, *_, name = function_of(nodeid).split("::")
    path = root / file
    return path.is_file() and re.search(rf"def {name}\b", path.read_text()) is not None


def read_all(results: Path = RESULTS) -> Iterator[tuple[str, str, str]]:
    """(feature id, test, outcome) of every suite's last runs."""
    for path in sorted(results.glob("*.json")):
        for nodeid, outcome in json.loads(path.read_text()).items():
            for feature_id in outcome["features"]:
                yield feature_id, nodeid, outcome["outcome"]
