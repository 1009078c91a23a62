"""/{project}/schedules, /{project}/new-schedule and the page of each."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from jobs.models import Job, Membership, Schedule
from tests.factories import make_job, make_schedule, make_spec
from tests.integration.web.conftest import SOURCE, text_of

FORM = {
    "name": "nightly",
    "cron": "30 2 * * *",
    "zone": "Europe/Berlin",
    "overlap": "replace",
    "catch_up": "all",
    "source": SOURCE.replace("\n", "\r\n"),
}
PAGE = "/rl/schedules/nightly"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.mark.feature("P9.2")
def test_a_member_makes_one_looks_at_it_pauses_runs_and_deletes_it(member):
    assert "No schedules" in member.text("/rl/schedules")
    assert member.post("/rl/new-schedule", FORM)["Location"] == PAGE
    schedule = Schedule.objects.get()
    assert (schedule.owner, schedule.spec_source) == (member.user, SOURCE)
    assert (schedule.overlap, schedule.catch_up) == ("replace", "all")
    page = member.text(PAGE)
    assert "nightly was created." in page and "30 2 * * *" in page
    assert page.count("upcoming") == 3
    member.post(f"{PAGE}/pause")
    assert "Paused by mia." in member.text(PAGE)
    assert "paused" in member.text("/rl/schedules")
    member.post(f"{PAGE}/resume")
    assert "Paused" not in member.text(PAGE)
    job_page = member.post(f"{PAGE}/run")["Location"]
    assert job_page == f"/rl/jobs/{Job.objects.get().pk}"
    member.post(f"{PAGE}/delete")
    assert not Schedule.objects.exists()
    assert f'href="{PAGE}"' not in member.get(job_page).content.decode()


@pytest.mark.feature("P9.2")
def test_a_job_says_by_which_schedule_it_was_made_and_the_schedule_names_its_job(member, project):
    schedule = make_schedule(project)
    job = make_job(project)
    slot = datetime(2026, 7, 1, 3, tzinfo=timezone.utc)
    schedule.runs.create(slot=slot, outcome="submitted", job=job)
    assert f'href="{PAGE}"' in member.get(f"/rl/jobs/{job.pk}").content.decode()
    for address in (PAGE, "/rl/schedules"):
        assert f'href="/rl/jobs/{job.pk}"' in member.get(address).content.decode()
    assert "Wed, Jul 1, 03:00" in member.text(PAGE)
    Job.objects.all().delete()
    assert "Job deleted" in member.text(PAGE)


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("America/New_York", "Wed, Jul 1, 12:00 Tue, Jun 30, 23:00 America/New_York"),
        ("UTC", "Wed, Jul 1, 12:00 Wed, Jul 1, 03:00 UTC"),
        ("Asia/Tokyo", "Wed, Jul 1, 12:00"),
    ],
)
def test_each_time_is_in_the_readers_zone_and_in_the_schedules(member, project, zone, said):
    member.post("/settings/time", {"time_zone": "Asia/Tokyo"})
    schedule = make_schedule(project, zone=zone)
    slot = datetime(2026, 7, 1, 3, tzinfo=timezone.utc)
    schedule.runs.create(slot=slot, outcome="skipped", message="Job 1 had not ended.")
    assert said in member.text(PAGE)
    assert "Wed, Jul 1, 12:00" in member.text("/rl/schedules")


def test_every_error_is_reported_where_it_is(member):
    wrong = {**FORM, "name": "No", "cron": "61 * * * *", "zone": "Berlin", "source": "nam: x\n"}
    answer = member.post("/rl/new-schedule", wrong)
    assert answer.status_code == 422
    page = text_of(answer)
    for said in ("small letters", "no cron expression", "no time zone", "Line 1"):
        assert said in page
    html = answer.content.decode()
    assert 'data-line="1"' in html and '<li class="bad">1</li>' in html and "nam: x" in html
    assert "This field is required" in text_of(member.post("/rl/new-schedule", {}))


def test_a_name_that_is_taken_is_reported(member, project):
    make_schedule(project)
    assert "has a schedule nightly already" in text_of(member.post("/rl/new-schedule", FORM))


def test_a_new_one_can_begin_with_the_specification_of_a_job(member, project):
    job = make_job(project, spec_source="run: echo of-the-job\n")
    assert "of-the-job" in member.text(f"/rl/new-schedule?from={job.pk}")


def test_a_change_of_anothers_times_leaves_it_theirs_and_one_of_its_job_does_not(
    maintainer, project
):
    schedule = make_schedule(project, spec_source=SOURCE)
    owner = schedule.owner
    change = {**FORM, "cron": "@weekly"}
    assert maintainer.post(PAGE, change)["Location"] == PAGE
    schedule.refresh_from_db()
    assert (schedule.owner, schedule.cron) == (owner, "@weekly")
    maintainer.post(PAGE, {**change, "source": "run: echo other"})
    schedule.refresh_from_db()
    assert schedule.owner == maintainer.user
    answer = maintainer.post(PAGE, {**change, "cron": "x"})
    assert (answer.status_code, "five fields" in text_of(answer)) == (422, True)


def test_others_look_and_have_no_buttons(viewer, member, project):
    make_schedule(project)
    for browser in (viewer, member):
        page = browser.get(PAGE).content.decode()
        assert "echo hello" in page
        assert "Run now" not in page and "Delete" not in page
    assert "New schedule" not in viewer.text("/rl/schedules")
    assert "New schedule" in member.text("/rl/schedules")


def test_what_keeps_it_from_running_now_is_reported(maintainer, project):
    schedule = make_schedule(project, spec=make_spec(secrets={"A": "A"}))
    assert "names a secret" in text_of(maintainer.post(f"{PAGE}/run", follow=True))
    Membership.objects.filter(user=schedule.owner).delete()
    assert "Pause it and resume it" in text_of(maintainer.post(f"{PAGE}/run", follow=True))


def test_there_is_no_page_of_one_that_is_not_there(member):
    assert member.get("/rl/schedules/none").status_code == 404


@pytest.mark.feature("P9.2")
def test_one_whose_time_zone_is_gone_is_shown_with_the_reason_and_is_given_another(member, project):
    schedule = make_schedule(project, owner=member.user, zone="Mars/Olympus")
    slot = datetime(2026, 7, 1, 3, tzinfo=timezone.utc)
    schedule.runs.create(slot=slot, outcome="skipped")
    for address in (PAGE, "/rl/schedules"):
        page = member.text(address)
        assert "The time zone Mars/Olympus is not known here any more. Give the schedule" in page
    assert "Wed, Jul 1, 03:00" in member.text(PAGE)
    member.post(PAGE, FORM)
    assert "Mars" not in member.text(PAGE)
    assert Schedule.objects.get().zone == "Europe/Berlin"


def test_times_that_are_seldom_meant_are_remarked_on(member):
    member.post("/rl/new-schedule", {**FORM, "cron": "*/90 * * * *"})
    assert "*/90 in the minute field" in member.text(PAGE)


def test_the_meaning_has_the_hours_of_the_reader(member, project):
    member.post("/settings/time", {"time_zone": "Asia/Tokyo", "hour_format": "12"})
    make_schedule(project, cron="30 14 * * 1-5")
    for address in (PAGE, "/rl/schedules"):
        assert "At 2:30 PM, Monday through Friday" in member.text(address)
    shown = member.text("/rl/schedule-times", cron="30 14 * * *", zone="UTC")
    assert "At 2:30 PM, every day, UTC" in shown


def test_the_form_shows_the_meaning_and_times_of_what_is_typed(member, project):
    def shown(cron: str, zone: str) -> str:
        return member.text("/rl/schedule-times", cron=cron, zone=zone)

    assert "At 02:30, Monday through Friday, Asia/Tokyo" in shown("30 2 * * 1-5", "Asia/Tokyo")
    assert shown("30 2 * * 1-5", "Asia/Tokyo").count("02:30 Asia/Tokyo") == 3
    assert "day 30 does not exist in month 2" in shown("0 0 30 2 *", "UTC")
    assert "There is no time zone" in shown("@daily", "Mars/Base")
    assert shown("", "UTC").strip() == ""
