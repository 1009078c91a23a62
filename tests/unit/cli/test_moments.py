"""Points in time as options: on the clock of this machine, or a length of time before now."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.unit.rest.fake_portal import page

JOBS = "GET /projects/rl/jobs"


def test_times_of_ps_without_an_offset_are_those_of_this_machine(mportal, portal, in_zone):
    in_zone("Europe/Berlin")
    portal.on(JOBS, page([]))
    # The night in which clocks are set back.
    mportal("ps", "--since", "2026-10-25T01:30", "--until", "2026-10-25T03:30:00")
    mportal("ps", "--since", "2026-10-25T01:30:00Z")
    first, second = (dict(seen.url.params) for seen in portal.seen(JOBS))
    assert first["since"] == "2026-10-25T01:30:00+02:00"
    assert first["until"] == "2026-10-25T03:30:00+01:00"
    moment = datetime.fromisoformat("2026-10-25T01:30:00+00:00")
    assert datetime.fromisoformat(second["since"]) == moment


def test_ps_refuses_what_is_no_time(mportal):
    refused = mportal("ps", "--since", "soon")
    assert refused.exit_code == 2
    assert "'soon' is neither a length" in refused.stderr


def test_the_days_of_a_saved_view_are_those_of_this_machine(mportal, portal, in_zone):
    in_zone("Europe/Berlin")
    view = {
        "id": 3, "name": "march", "query": "from=2026-03-29&to=2026-03-29", "is_shared": True,
        "owner": "ada", "can_delete": False, "url": "http://portal/rl/jobs?from=2026-03-29",
    }  # fmt: skip
    portal.on("GET /projects/rl/views", page([view]))
    portal.on(JOBS, page([]))
    mportal("ps", "--view", "march")
    params = dict(portal.seen(JOBS)[0].url.params)
    assert params["since"] == "2026-03-29T00:00:00+01:00"
    assert params["until"] == "2026-03-30T00:00:00+02:00"


@pytest.mark.parametrize("day", ["abc", "9999-12-31", "2026-02-30"])
def test_a_saved_view_with_a_day_that_does_not_exist_has_the_rest(mportal, portal, day):
    view = {
        "id": 3, "name": "odd", "query": f"status=FAILED&to={day}", "is_shared": True,
        "owner": "ada", "can_delete": False, "url": "http://portal/rl/jobs",
    }  # fmt: skip
    portal.on("GET /projects/rl/views", page([view]))
    portal.on(JOBS, page([]))
    assert mportal("ps", "--view", "odd").exit_code == 0
    params = dict(portal.seen(JOBS)[0].url.params)
    assert params == {"status": "FAILED", "limit": "20"}
