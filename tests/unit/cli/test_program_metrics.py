"""mportal metrics: the last values of a program's metrics, or the history of one."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.rest.fake_portal import MOMENT, ok

METRICS = "GET /projects/rl/jobs/42/program-metrics"


def series(**fields: Any) -> dict[str, Any]:
    return {
        "name": "loss",
        "rank": 0,
        "at": MOMENT,
        "step": 12,
        "value": 0.25,
        "lowest": 0.25,
        "highest": 2.0,
        "t": [],
        "steps": [],
        "values": [],
        **fields,
    }


def found(*rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    known = {"attempt": 1, "is_over": False, "is_final": False, "is_full": False}
    return {**known, "series": list(rows), **fields}


def test_each_metric_is_a_row(portal, mportal) -> None:
    portal.on(METRICS, ok(found(series(), series(rank=1, value=None), is_full=True)))
    shown = mportal("metrics", "42")
    assert shown.exit_code == 0
    first, second = shown.stdout.splitlines()[1:3]
    assert first.split()[:6] == ["loss", "0", "12", "0.25", "0.25", "2"]
    assert "not finite" in second
    assert "No more metrics" in shown.stderr


def test_the_history_of_one_is_asked_for_by_its_name(portal, mportal) -> None:
    row = series(t=[1_700_000_000.0, 1_700_000_001.0], steps=[1, 2], values=[2.0, 0.25])
    portal.on(METRICS, ok(found(row)))
    shown = mportal("metrics", "42", "-n", "loss", "-r", "0", "-o", "json")
    assert [each["value"] for each in json.loads(shown.stdout)] == [2.0, 0.25]
    assert dict(portal.requests[-1].url.params) == {"name": "loss", "rank": "0"}


def test_without_metrics_it_exits_with_1(portal, mportal) -> None:
    portal.on(METRICS, ok(found()))
    shown = mportal("metrics", "42")
    assert shown.exit_code == 1
    assert "reported no such metric" in shown.stderr
