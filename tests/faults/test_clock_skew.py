"""Two of each kind, five minutes ahead and five behind, around one PostgreSQL: none notices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs.policies.endings import retry_delay_s
from tests.faults.fleet import Fleet
from tests.portal_process import CHECKOUT
from tests.waiting import eventually

SKEW_S = 300
# Reports and rows are seconds old at most; five minutes would show.
CLOSE = timedelta(seconds=20)
LOCAL = {"infra": "local"}
LINK = """
import django
django.setup()
from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.models import User
print(create_sign_in_link(User.objects.get(username="admin")))
"""
TIME = "import time; print(time.time())"
pytestmark = pytest.mark.timeout(300)


def skewed_by(seconds: int) -> dict[str, str]:
    """Return the environment of a process with a skewed clock; see `skewed/sitecustomize.py`."""
    path = f"{Path(__file__).with_name('skewed')}:{CHECKOUT}"
    return {"SKEW_S": str(seconds), "PYTHONPATH": path}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Start two of each kind, one ahead and one behind.

    The first web and beat are ahead; of workers and followers the second is.
    """
    fleet = Fleet(2)
    for name, member in fleet.members.items():
        kind, _, number = name.partition("-")
        ahead = (number == "0") == (kind in {"web", "beat"})
        skew = skewed_by(SKEW_S if ahead else -SKEW_S)
        member.environment = {**member.environment, **skew}
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.close()


def moment(text: str | None) -> datetime:
    assert text is not None
    return datetime.fromisoformat(text)


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def attempts(fleet: Fleet, job_id: int) -> list[dict[str, Any]]:
    found = fleet.get(f"/{job_id}/attempts")
    return sorted(found.get("results", found), key=lambda attempt: attempt["number"])


def log_lines(fleet: Fleet, job_id: int) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = fleet.get(f"/{job_id}/logs", limit=1000)["results"]
    return lines


def web_urls(fleet: Fleet) -> list[str]:
    """List the addresses of the webs themselves, one ahead and one behind."""
    argvs = [" ".join(fleet[f"web-{number}"].argv) for number in range(2)]
    ports = [re.search(r"--port[ =](\d+)", argv) for argv in argvs]
    return [f"http://127.0.0.1:{port[1]}" for port in ports]


def test_the_processes_really_have_other_clocks(fleet):
    for skew in (SKEW_S, -SKEW_S):
        theirs = float(fleet.run_python(TIME, **skewed_by(skew)))
        assert abs(theirs - utc_now().timestamp() - skew) < CLOSE.total_seconds()


def test_a_job_has_the_times_at_which_it_was_submitted_ran_and_printed(fleet):
    began = utc_now()
    job_id = fleet.submit("times", name="times", run="echo one; sleep 2; echo two", resources=LOCAL)
    job = fleet.wait_for_end(job_id)
    assert (job["status"], job["exit_code"], job["attempt"]) == ("SUCCEEDED", 0, 1)

    [attempt] = attempts(fleet, job_id)
    order = [began, *(moment(job[name]) for name in ("created_at", "started_at", "ended_at"))]
    assert order[-1] < utc_now() + CLOSE
    for earlier, later in pairwise(order):
        assert -timedelta(seconds=1) < later - earlier < CLOSE
    for stage in attempt["stages"]:
        assert 0 <= stage["duration_s"] < CLOSE.total_seconds(), stage
        assert began - CLOSE < moment(stage["started_at"]) < utc_now() + CLOSE
    [run] = [stage for stage in attempt["stages"] if stage["name"] == "run"]
    assert run["duration_s"] >= 1.5
    for line in log_lines(fleet, job_id):
        assert began - CLOSE < moment(line["at"]) < utc_now() + CLOSE


def test_cancelling_keeps_the_whole_grace(fleet):
    """Check that SIGTERM comes, and no process whose clock is ahead considers the job overdue."""
    run = """
trap 'echo asked; sleep 6; echo gone by itself; exit 0' TERM
echo begun
while :; do sleep 0.1; done
"""
    job_id = fleet.submit("grace", name="grace", run=run, resources=LOCAL)
    assert eventually(lambda: "begun" in fleet.lines(job_id), timeout_s=60)
    fleet.cancel(job_id)
    job = fleet.wait_for_end(job_id)
    assert job["status"] == "CANCELLED"
    assert fleet.lines(job_id) == ["begun", "asked", "gone by itself"]
    assert attempts(fleet, job_id)[0]["stop_reason"] == "CANCELLED_BY_USER"


def test_another_try_comes_after_its_back_off_and_not_five_minutes_later(fleet):
    portal = {"retry": {"max_attempts": 3}}
    job_id = fleet.submit("retry", name="retry", run="exit 3", resources=LOCAL, portal=portal)
    job = fleet.wait_for_end(job_id, timeout_s=90)
    assert (job["status"], job["exit_code"], job["attempt"]) == ("FAILED", 3, 3)
    for number, (last, following) in enumerate(pairwise(attempts(fleet, job_id)), 1):
        waited = moment(following["created_at"]) - moment(last["ended_at"])
        at_least = timedelta(seconds=retry_delay_s(number))
        assert at_least - timedelta(seconds=0.5) < waited < at_least + CLOSE


def test_ticks_are_taken_and_no_process_is_called_silent(fleet):
    """Release a job by a change of its row, so that no hint reports it."""
    job_id = fleet.submit(
        "tick", name="tick", run="sleep 16; exit 4", resources=LOCAL, portal={"hold": True}
    )
    fleet.query(
        f"UPDATE jobs_job SET held = false, wait_reason = '' WHERE id = {job_id} RETURNING id"
    )
    assert eventually(lambda: fleet.job(job_id)["status"] == "RUNNING", timeout_s=30)
    job = fleet.wait_for_end(job_id)
    assert (job["exit_code"], job["attempt"], job["stop_reason"]) == (4, 1, "USER_CODE")
    recorded = fleet.get(f"/{job_id}/events")["results"]
    assert not [event for event in recorded if "backend" in event["message"].lower()]
    for earlier, later in pairwise(moment(event["at"]) for event in recorded):
        assert later - earlier > -timedelta(seconds=1)


@pytest.mark.parametrize(("maker", "first"), [(SKEW_S, 1), (-SKEW_S, 0)])
def test_a_sign_in_link_and_its_session_are_valid_everywhere(fleet, maker, first):
    """Use a link that one clock made at a web of the other, and its session at both."""
    secret = fleet.run_python(LINK, **skewed_by(maker)).split()[-1]
    urls = web_urls(fleet)
    with httpx.Client(follow_redirects=True, timeout=15) as browser:
        page = browser.get(f"{urls[first]}/sign-in/once/{secret}")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        browser.post(str(page.url), data={"csrfmiddlewaretoken": token[1]})
        for url in urls:
            table = browser.get(f"{url}/default/jobs")
            assert table.url.path == "/default/jobs", table.url


def test_a_token_made_by_one_web_is_good_at_the_other_until_its_day(fleet):
    urls = web_urls(fleet)
    for maker in urls:
        with fleet.client(maker) as client:
            made = client.post("/api/v1/tokens", json={"name": "skewed", "days": 1}).json()
        expires = moment(made["expires_at"])
        assert abs(expires - utc_now() - timedelta(days=1)) < CLOSE
        for url in urls:
            headers = {"Authorization": f"Bearer {made['token']}"}
            assert httpx.get(f"{url}/api/v1/me", headers=headers, timeout=15).status_code == 200
