"""The column WHY of mportal ps."""

from __future__ import annotations

from tests.unit.rest.fake_portal import ended_job, page

JOBS = "GET /projects/rl/jobs"


def test_ps_shows_the_diagnosis_of_a_failed_job(mportal, portal):
    failed = ended_job("FAILED", stop_reason="USER_CODE", diagnosis="A Python module is missing")
    portal.on(JOBS, page([failed]))
    assert mportal("ps").stdout.splitlines()[1].endswith("A Python module is missing")
