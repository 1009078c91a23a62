"""Counts of calls by name, and the failures that are kept."""

from __future__ import annotations

from collections import Counter

from monarch_client.context.driver.activity import MOST_FAILURES, MOST_NAMES, OTHERS, Activity
from monarch_client.context.values import VALUE, Payload, to_error
from monarch_client.wire.task_groups import task_groups

DONE = Payload(VALUE, b"")


def failed(text: str) -> Payload:
    return to_error(ValueError(text), "square in process 7 on node-1")


def test_each_name_has_counts_of_each_state_and_a_mean() -> None:
    activity = Activity()
    for _ in range(9):
        activity.submitted("square")
    activity.ran("square", DONE, 1_000_000_000, "node-1")
    activity.ran("square", failed("bad number 7"), 3_000_000_000, "node-1")
    activity.failed("square", failed("an argument failed"))
    activity.cancelled("square")
    (row,) = activity.rows(Counter({"square": 2}))
    counts = (row.pending, row.running, row.finished, row.failed, row.cancelled)
    assert counts == (3, 2, 1, 2, 1)
    assert row.mean_seconds == 2.0


def test_failures_have_name_host_error_and_traceback() -> None:
    activity = Activity()
    activity.ran("square", failed("bad number 7"), 1, "node-1")
    (row,), left_out = activity.failures()
    assert (row.name, row.host, left_out) == ("square", "node-1", 0)
    assert row.error == "square in process 7 on node-1: ValueError: bad number 7"
    assert row.trace.endswith("ValueError: bad number 7\n")


def test_nothing_grows_with_the_number_of_names_and_failures() -> None:
    activity = Activity()
    for number in range(10 * MOST_NAMES):
        activity.submitted(f"task-{number}")
        activity.ran(f"task-{number}", failed(str(number)), 1, "node-1")
    rows = activity.rows(Counter(["task-5000", "task-1"]))
    assert len(rows) == MOST_NAMES + 1
    others = next(row for row in rows if row.name == OTHERS)
    assert (others.failed, others.running) == (9 * MOST_NAMES, 1)
    failures, left_out = activity.failures()
    assert len(failures) + left_out == 10 * MOST_NAMES
    assert len(failures) == MOST_FAILURES
    assert failures[0].name == f"task-{10 * MOST_NAMES - 1}"


def test_tasks_of_too_many_names_are_counted_by_their_function() -> None:
    activity = Activity()
    for number in range(3 * MOST_NAMES):
        activity.submitted(f"fit ({number}, 1e-06)", "fit")
        activity.ran(f"fit ({number}, 1e-06)", DONE, 1_000_000_000, "node-1", "fit")
    assert activity.counted_as("fit (299, 1e-06)", "fit") == "fit"
    rows = activity.rows(Counter(["fit"]))
    assert {row.function for row in rows} == {"fit"}
    assert (rows[-1].name, rows[-1].finished, rows[-1].running) == ("fit", 2 * MOST_NAMES, 1)
    (group,) = task_groups(rows)
    assert (group.total.name, group.total.finished) == ("fit", 3 * MOST_NAMES)
    assert group.total.mean_seconds == 1.0


def test_texts_that_no_encoding_has_are_reported() -> None:
    activity = Activity()
    activity.submitted("caf\udce9")
    activity.ran("caf\udce9", failed("caf\udce9" * 100_000), 1, "node-1")
    assert activity.rows(Counter())[0].name == "caf?"
    assert "caf?" in activity.failures()[0][0].trace
