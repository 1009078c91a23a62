"""Slices of the expensive suites: nothing is left out for ever, and no change runs too much."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.suites import run
from tests.suites.selection import (
    ROOT,
    SLICES,
    Candidate,
    Change,
    following,
    packages_of,
    packages_watched_by,
    select,
)
from tests.suites.slow import SLOW
from tests.suites.watches import WATCHES

IDS = [f"tests/faults/test_{n % 7}.py::test_{n}" for n in range(1200)]
TESTS = [Candidate(test_id, is_smoke=test_id == IDS[0]) for test_id in IDS]


def change(*files: str, package_count: int = 40) -> Change:
    return Change(frozenset(files), packages_of(files), package_count)


def test_a_run_of_each_slice_takes_every_test_once() -> None:
    taken = Counter(
        test_id
        for number in range(SLICES)
        for test_id in select(list(map(Candidate, IDS)), frozenset({number}), None)
    )
    assert taken == Counter(IDS)


def test_slices_are_of_similar_size_and_stay_the_same() -> None:
    sizes = Counter(Candidate(test_id).slice for test_id in IDS)
    assert min(sizes.values()) > len(IDS) / SLICES / 1.5
    assert Candidate("tests/faults/test_budgets.py::test_one").slice == 1


def test_tests_that_share_a_launch_stay_in_one_slice() -> None:
    tests = [
        Candidate(f"tests/cluster/test_a.py::test_{n}", stays_together=True) for n in range(20)
    ]
    assert len({test.slice for test in tests}) == 1


def test_the_smoke_test_of_a_suite_is_in_every_slice() -> None:
    assert all(IDS[0] in select(TESTS, frozenset({number}), None) for number in range(SLICES))


def test_a_test_whose_file_is_touched_runs_in_any_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.suites.selection.packages_watched_by", lambda _: frozenset())
    tests = [*TESTS, Candidate("tests/faults/test_new.py::test_new")]
    touched = change("tests/faults/test_new.py")
    for number in range(SLICES):
        assert "tests/faults/test_new.py::test_new" in select(tests, frozenset({number}), touched)


def test_an_edited_test_runs_however_many_others_its_change_touches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.suites.selection.packages_watched_by", lambda _: {"jobs/logs"})
    tests = [*TESTS, *(Candidate(f"tests/faults/test_new.py::test_{n}") for n in range(12))]
    touched = change("jobs/logs/ingest.py", "tests/faults/test_new.py")
    assert {test.id for test in tests[-12:]} <= select(tests, frozenset({0}), touched)


def test_touched_tests_that_outnumber_a_slice_become_one_more_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.suites.selection.packages_watched_by", lambda _: {"jobs/logs"})
    chosen = select(TESTS, frozenset({SLICES - 1}), change("jobs/logs/ingest.py"))
    assert {Candidate(test_id).slice for test_id in chosen - {IDS[0]}} == {SLICES - 1, 0}


def test_a_test_watches_the_packages_it_imports_mirrors_and_declares() -> None:
    assert "monarch_portal/embedded/*" in packages_watched_by(
        "tests/acceptance/test_compose_commands.py"
    )
    assert "jobs/backends" in packages_watched_by("tests/integration/backends/test_contract.py")
    assert "jobs/logs" in packages_watched_by("tests/faults/test_log_faults.py")


def test_a_change_below_a_watched_folder_touches_its_tests() -> None:
    touched = change("templates/queue/queue.html")
    assert touched.touches("tests/browser/test_queue.py")
    assert not touched.touches("tests/faults/test_log_faults.py")


def test_a_change_of_a_top_module_touches_the_tests_of_its_package_alone() -> None:
    touched = change("jobs/lifecycle.py")
    assert touched.touches("tests/faults/test_crash_matrix_end.py")
    assert touched.touches("tests/browser/test_live.py")  # imports it
    assert not touched.touches("tests/faults/test_log_faults.py")
    assert not change("jobs/logs/ingest.py").touches("tests/browser/test_mesh.py")


def test_documents_belong_to_no_package() -> None:
    assert packages_of(["docs/a.md", "jobs/README.md", "tests/unit/a.py"]) == frozenset()


def test_every_path_that_the_suites_name_exists() -> None:
    named = {*SLOW, *WATCHES, *(package for packages in WATCHES.values() for package in packages)}
    assert sorted(each for each in named if not (ROOT / each.removesuffix("/*")).exists()) == []


@pytest.mark.parametrize(
    ("choice", "commits", "packages", "options", "said"),
    [
        ("all", 9, 1, "", "Every suite runs whole."),
        ("", 13, 1, "--slice=1 --since=abc", "Slice 1 of"),
        ("3", 9, 1, "--slice=3 --since=abc", "Slice 3 of"),
        ("", 23, 20, "--slice=0,11", "two, because the change touches 20 of 40 packages"),
    ],
)
def test_a_run_takes_the_slice_of_its_commit_and_two_for_a_large_change(
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    commits: int,
    packages: int,
    options: str,
    said: str,
) -> None:
    touched = change(*(f"jobs/p{n}/a.py" for n in range(packages)))
    monkeypatch.setattr(run, "commit_count", lambda: commits)
    monkeypatch.setattr(run, "base_commit", lambda: "abc")
    monkeypatch.setattr(run, "change_since", lambda _: touched)
    chosen = run.choose_slices(choice)
    assert chosen.options == options
    assert said in chosen.sentence


def test_after_the_last_slice_comes_the_first() -> None:
    assert following(frozenset({SLICES - 1})) == {SLICES - 1, 0}
