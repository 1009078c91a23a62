"""Points in time as options: on the clock of this machine, or a length of time before now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.unit.rest.fake_portal import page

JOBS = "GET /projects/rl/jobs"


@pytest.fixture
def in_berlin() -> Iterator[None]:
    """Set the clock of this process to Berlin's time zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_times_of_ps_without_an_offset_are_those_of_this_machine(mportal, portal):
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
