"""mportal top: the hosts of a job as a table, once or again and again."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from monarch_client.cli.output import amount
from monarch_client.cli.top import WATCH_S
from monarch_client.wire.metrics import Hosts
from monarch_client.wire.tasks import TaskContexts
from tests.task_frames import context, count
from tests.unit.rest.fake_portal import MOMENT, ok

METRICS = "GET /projects/rl/jobs/42/metrics"
TASKS = "GET /projects/rl/jobs/42/tasks"
GIB = 1 << 30


def host(rank: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "rank": rank,
        "mesh": "trainers",
        "address": "10.0.0.1",
        "status": "RUNNING",
        "at": MOMENT,
        "is_silent": False,
        "cpu": 37.4,
        "cpus": 8,
        "memory_used": 8 * GIB,
        "memory_total": 32 * GIB,
        "disk_used": 100 * GIB,
        "disk_total": 1500 * GIB,
        "net_in": 1_500_000.0,
        "net_out": 12.0,
        "gpus": [],
        **fields,
    }


def gpu(index: int, utilization: float | None) -> dict[str, Any]:
    own = {"celsius": 60, "watts": 400.0, "name": "H100"}
    memory = {"memory_used": 60 * GIB, "memory_total": 80 * GIB}
    return {"index": index, "utilization": utilization, **own, **memory}


def metrics(*hosts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "attempt": 1,
        "is_over": False,
        "is_final": False,
        "hosts": list(hosts),
        "series": None,
        **fields,
    }


def test_a_table_has_a_row_for_each_host_with_units(portal, mportal) -> None:
    nothing = dict.fromkeys(("at", "cpu", "memory_used", "disk_used", "net_in", "net_out"))
    portal.on(METRICS, ok(metrics(host(gpus=[gpu(0, 97), gpu(1, None)]), host(1, **nothing))))
    done = mportal("top", "42")
    assert done.exit_code == 0
    head, names, first, second = done.stdout.splitlines()
    assert head == "Attempt 1"
    assert names.split()[:4] == ["NODE", "MESH", "CPU", "MEMORY"]
    for words in ("37 %", "8.0 GiB of 32 GiB", "97 -", "75 75", "100 GiB of 1.5 TiB", "1.4 MiB/s"):
        assert words in first
    assert "12 B/s" in first
    assert second.split()[:2] == ["1", "trainers"]
    assert "nothing yet" in second


def test_json_is_what_rest_returns_of_hosts_and_of_tasks(portal, mportal) -> None:
    hosts = metrics(host(gpus=[gpu(0, 97)]))
    own = {"rank": 1, "at": MOMENT, "is_silent": False}
    state = {"attempt": 1, "is_over": False, "is_final": False, "left_out": 0}
    found = {**state, "contexts": [{**context(), **own}]}
    portal.on(METRICS, ok(hosts))
    portal.on(TASKS, ok(found))
    shown = json.loads(mportal("top", "42", "-o", "json").stdout)
    assert msgspec.convert(shown["metrics"], Hosts) == msgspec.convert(hosts, Hosts)
    assert msgspec.convert(shown["tasks"], TaskContexts) == msgspec.convert(found, TaskContexts)


def test_json_of_a_portal_without_tasks_has_the_hosts(portal, mportal) -> None:
    portal.on(METRICS, ok(metrics(host(gpus=[gpu(0, 97)]))))
    shown = json.loads(mportal("top", "42", "-o", "json").stdout)
    assert shown["tasks"] is None
    (row,) = shown["metrics"]["hosts"]
    assert (row["memory_used"], row["gpus"][0]["watts"]) == (8 * GIB, 400.0)
    assert mportal("top", "42", "-q").stdout == "0\n"


def test_watching_goes_on_until_the_attempt_is_over(portal, mportal) -> None:
    # Another attempt may follow the one that is over.
    over = metrics(host(), is_over=True)
    portal.on(METRICS, ok(metrics(host())), ok(over), ok({**over, "is_final": True}))
    done = mportal("top", "42", "--watch")
    assert done.exit_code == 0
    assert portal.pauses == [WATCH_S, WATCH_S]
    assert done.stdout.count("Attempt 1") == 3
    assert "which is over: as last reported" in done.stdout


def test_a_job_of_which_nothing_is_known_is_reported_as_such(portal, mportal) -> None:
    portal.on(METRICS, ok(metrics(attempt=None)))
    done = mportal("top", "42")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "has not started" in done.stderr


def test_tasks_actors_and_the_latest_failure_follow_the_hosts(portal, mportal) -> None:
    own = {"rank": 1, "at": MOMENT, "is_silent": False}
    rows = [count(), *(count(f"task-{number}", mean_seconds=None) for number in range(30))]
    contexts = [{**context(tasks=rows), **own}, {**context(machine="ada-laptop"), **own}]
    contexts += [{**context(), **own} for _ in range(4)]
    found = {"attempt": 1, "is_over": False, "is_final": False, "left_out": 2}
    portal.on(METRICS, ok(metrics(host())))
    portal.on(TASKS, ok({**found, "contexts": contexts}))
    done = mportal("top", "42")
    lines = done.stdout.splitlines()
    assert any(line.startswith("Tasks of node 1, process 71: 9 objects") for line in lines)
    outside = "Tasks of ada-laptop, outside of the job, process 71: 9 objects"
    assert any(line.startswith(outside) for line in lines)
    table = [line.split() for line in lines]
    assert ["TASK", "PENDING", "RUNNING", "FINISHED", "FAILED", "CANCELLED", "MEAN"] in table
    assert ["square", "4", "2", "90", "3", "1", "0.25", "s"] in table
    assert ["counter", "Counter", "alive", "node-1", "4711", "12"] in table
    assert ["node-1", "5", "7", "3.0", "GiB", "0", "B"] in table
    assert "ValueError: bad number 7" in done.stdout
    assert "Latest of 3 failures" in done.stdout
    assert "11 more rows" in done.stderr
    assert "4 more task contexts" in done.stderr


def test_an_attempt_can_be_named(portal, mportal) -> None:
    portal.on(METRICS, ok(metrics(host(is_silent=True))))
    assert "silent for" in mportal("top", "42", "-a", "2").stdout
    assert dict(portal.seen(METRICS)[0].url.params) == {"attempt": "2"}


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (80 * GIB, "80 GiB"), (2**41, "2.0 TiB")],
)
def test_amounts_are_in_the_unit_that_people_would_take(count: int, words: str) -> None:
    assert amount(count) == words
