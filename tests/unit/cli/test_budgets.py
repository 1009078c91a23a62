"""`mportal budget` and `mportal usage`: what may be spent, what was spent, by whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.rest.fake_portal import MOMENT, ok, problem

pytestmark = pytest.mark.feature("P5.6")
BUDGET, USAGE = "/projects/rl/budget", "GET /projects/rl/usage"


def budget_json(**fields: Any) -> dict[str, Any]:
    budget = {
        "project": "rl",
        "usd": "100.000000",
        "on_spent": "hold",
        "warn_at": [50, 80, 100],
        "month": "2026-11",
        "begins_at": MOMENT,
        "ends_at": MOMENT,
        "spent_usd": "51.250000",
        "percent": 51,
        "holds": False,
        "sentence": "Project rl has used 51 % of its $100.00 for November 2026.",
        "notices": [{"threshold": 50, "usd": "50.100000", "at": MOMENT}],
        "set_by": "root",
        "set_at": MOMENT,
        "may_set": False,
    }
    return {**budget, **fields}


def usage_json(by: str, *rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    days = {"first_day": "2026-11-01", "last_day": "2026-11-24"}
    total = {"usd": "12.500000", "node_hours": 40.0, "gpu_hours": 320.0}
    return {"project": "rl", **days, "by": by, "rows": list(rows), **total, **fields}


def row(key: str, name: str, **fields: Any) -> dict[str, Any]:
    used = {"usd": "12.500000", "node_hours": 40.0, "gpu_hours": 320.0}
    return {"key": key, "name": name, **used, **fields}


def test_a_budget_says_what_was_spent_and_what_happens_when_it_is_used_up(mportal, portal):
    portal.on(f"GET {BUDGET}", ok(budget_json()))
    text = mportal("budget", "get").stdout
    assert "rl: $51.25 of $100.00 spent in 2026-11" in text
    assert "no further job starts" in text
    assert "50 %" in text and "$50.10" in text
    assert mportal("budget", "get", "-q").stdout == "51.250000\n"


def test_a_project_without_a_budget_says_so(mportal, portal):
    portal.on(f"GET {BUDGET}", ok(budget_json(usd=None, percent=None, notices=[])))
    assert mportal("budget", "get").stdout == "rl: no budget; $51.25 spent in 2026-11\n"


def test_a_budget_that_is_used_up_says_when_jobs_start_again(mportal, portal):
    said = "Project rl has used 104 % of its $100.00. Its jobs start again on 1 December."
    portal.on(f"GET {BUDGET}", ok(budget_json(holds=True, sentence=said)))
    assert said in mportal("budget", "get").stdout


def test_a_budget_is_set_with_its_thresholds(mportal, portal):
    portal.on(f"PUT {BUDGET}", ok(budget_json()))
    options = ("--on-spent", "stop", "--warn-at", "75", "--warn-at", "90")
    assert mportal("budget", "set", "$1,250.50", *options).exit_code == 0
    [request] = portal.seen(f"PUT {BUDGET}")
    sent = json.loads(request.content)
    assert sent == {"usd": "1250.50", "on_spent": "stop", "warn_at": [75, 90]}


def test_a_budget_is_taken_away(mportal, portal):
    portal.on(f"PUT {BUDGET}", ok(budget_json(usd=None)))
    assert mportal("budget", "set", "none").exit_code == 0
    [request] = portal.seen(f"PUT {BUDGET}")
    assert json.loads(request.content) == {"usd": None}


@pytest.mark.parametrize("amount", ["much", "0", "NaN", "Infinity", ""])
def test_an_invalid_amount_is_refused_before_any_request(mportal, portal, amount):
    result = mportal("budget", "set", amount)
    assert result.exit_code == 2
    assert "is not an amount in US$" in result.stderr
    assert portal.requests == []


def test_the_refusal_of_a_budget_names_who_may_set_it(mportal, portal):
    detail = "Budgets are set by administrators of this installation."
    portal.on(f"PUT {BUDGET}", problem(403, "permission_denied", detail))
    result = mportal("budget", "set", "5")
    assert result.exit_code != 0
    assert detail in result.stderr


def test_usage_by_person_has_a_total(mportal, portal):
    idle = row("", "No job: idle machines and deleted jobs", gpu_hours=None)
    portal.on(USAGE, ok(usage_json("user", row("ana", "ana"), idle)))
    lines = mportal("usage").stdout.splitlines()
    assert lines[0].split() == ["WHO", "US$", "NODE", "HOURS", "GPU", "HOURS"]
    assert lines[1].split() == ["ana", "$12.50", "40.0", "320.0"]
    assert lines[2].endswith("?")
    assert lines[3].split() == ["Total", "$12.50", "40.0", "320.0"]


def test_usage_by_job_names_its_number(mportal, portal):
    portal.on(USAGE, ok(usage_json("job", row("42", "ppo"))))
    text = mportal("usage", "--by", "job", "--from", "2026-11-01", "--to", "2026-11-02").stdout
    assert "42 ppo" in text
    [request] = portal.seen(USAGE)
    assert dict(request.url.params) == {"by": "job", "from": "2026-11-01", "to": "2026-11-02"}
