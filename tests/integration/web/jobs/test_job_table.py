"""/{project}/jobs: rows, filters in the address, pages, the text of an empty table."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.utils import timezone

from jobs.models import Job, User
from jobs.statuses import JobKind, JobStatus
from jobs.web.jobs import table_page
from tests.factories import make_attempt, make_job, make_project

PATH = "/rl/jobs"


def rows(browser, **query):
    html = browser.get(PATH, query).content.decode()
    return [int(number) for number in re.findall(r'<tr id="job-(\d+)"', html)]


def test_a_row_shows_status_name_owner_nodes_and_times(viewer, member, project):
    job = make_job(project, name="ppo", submitted_by=member.user, num_nodes=3)
    page = viewer.text(PATH)
    row = page[page.index(f" {job.pk} ") :]
    assert "Queued" in page
    for word in ("ppo", "mia", "3", "just now"):
        assert word in row


def test_a_waiting_job_says_why_and_a_failed_one_how(viewer, project):
    make_job(project, wait_reason="CAPACITY", message="Needs 16 nodes; 13 of 16 are free.")
    make_job(project, status=JobStatus.FAILED, message="The driver raised ValueError.")
    make_job(project, wait_reason="QUOTA")
    page = viewer.text(PATH)
    assert "Needs 16 nodes; 13 of 16 are free." in page
    assert "The driver raised ValueError." in page
    assert "Over a quota" in page


def test_a_failed_job_shows_its_diagnosis_instead_of_the_exit_code(viewer, project):
    job = make_job(project, status=JobStatus.FAILED, message="It returned exit code 1.")
    make_attempt(job, diagnosis={"code": "x", "title": "A disk is full"}, ended_at=timezone.now())
    again = make_job(project, status=JobStatus.FAILED, message="It returned exit code 2.")
    make_attempt(
        again, diagnosis={"code": "x", "title": "The port is taken"}, ended_at=timezone.now()
    )
    make_attempt(again, ended_at=timezone.now())
    page = viewer.text(PATH)
    assert "A disk is full" in page and "exit code 1" not in page
    assert "exit code 2" in page and "The port is taken" not in page


def test_jobs_of_other_projects_are_not_here(viewer, project):
    make_job(make_project("elsewhere"), name="secret-job")
    make_job(project)
    assert "secret-job" not in viewer.text(PATH)


def test_a_project_that_is_not_mine_is_as_if_it_did_not_exist(stranger, project):
    for path in (PATH, f"{PATH}/live", "/no-such-project/jobs"):
        assert stranger.get(path).status_code == 404


def test_filters_come_from_the_address(viewer, member, project):
    mine = make_job(project, submitted_by=viewer.user)
    failed = make_job(project, status=JobStatus.FAILED, name="sweep-7", submitted_by=member.user)
    done = make_job(
        project, status=JobStatus.SUCCEEDED, kind=JobKind.MONARCH, submitted_by=member.user
    )
    assert rows(viewer) == [done.pk, failed.pk, mine.pk]
    assert rows(viewer, status="FAILED") == [failed.pk]
    assert rows(viewer, status="FAILED,QUEUED") == [failed.pk, mine.pk]
    assert rows(viewer, status=["FAILED", "QUEUED"]) == [failed.pk, mine.pk]
    assert rows(viewer, user="me") == [mine.pk]
    assert rows(viewer, user="mia") == [done.pk, failed.pk]
    assert rows(viewer, kind="monarch") == [done.pk]
    assert rows(viewer, q="sweep") == [failed.pk]
    assert rows(viewer, q=str(done.pk)) == [done.pk]
    assert rows(viewer, status="NONSENSE", kind="odd") == [done.pk, failed.pk, mine.pk]


def test_a_chip_shows_its_count_and_turns_its_status_on_and_off(viewer, project):
    for _ in range(3):
        make_job(project, status=JobStatus.FAILED)
    make_job(project)
    html = viewer.get(PATH, {"status": "QUEUED", "q": "hel"}).content.decode()
    on = re.search(r'id="chip-failed"\s+href="\?([^"]*)"', html)
    off = re.search(r'id="chip-queued"\s+href="\?([^"]*)"\s+aria-current="true"', html)
    assert on is not None and off is not None
    assert on[1] == "q=hel&amp;status=QUEUED,FAILED"
    assert off[1] == "q=hel"
    assert re.search(r"Failed <span class=\"count\">3</span>", html)


def test_pages_lead_on_and_back_and_keep_the_filters(viewer, project, monkeypatch):
    monkeypatch.setattr(table_page, "PAGE_SIZE", 2)
    jobs = [make_job(project).pk for _ in range(5)][::-1]
    html = viewer.get(PATH, {"status": "QUEUED"}).content.decode()
    assert "Newer" not in html
    older = re.search(r'href="(\?[^"]+)" rel="next"', html)
    assert older is not None and "status=QUEUED" in older[1]
    html = viewer.get(PATH + older[1].replace("&amp;", "&")).content.decode()
    assert re.findall(r'<tr id="job-(\d+)"', html) == [str(pk) for pk in jobs[2:4]]
    assert 'rel="prev"' in html


def test_a_cursor_that_is_not_ours_leads_to_the_first_page(viewer, project):
    make_job(project)
    response = viewer.get(PATH, {"cursor": "nonsense", "status": "QUEUED"})
    assert (response.status_code, response["Location"]) == (302, "/rl/jobs?status=QUEUED")


@pytest.mark.parametrize("query", ["q=%00", "user=%00", "status=%00", "kind=%00", "cursor=%00"])
@pytest.mark.parametrize("path", [PATH, f"{PATH}/live"])
def test_an_address_typed_by_hand_never_breaks_the_page(viewer, project, path, query):
    assert viewer.get(f"{path}?{query}", follow=True).status_code == 200


def test_an_empty_table_teaches_the_next_step(member, viewer):
    page = member.text(PATH)
    assert "No jobs in rl yet" in page
    assert "mportal login --url http://testserver" in page
    assert "mportal submit -F -f job.yaml -p rl" in page
    assert "Submit a job" in page
    assert "Submit a job" not in viewer.text(PATH)


def test_a_table_that_filters_emptied_offers_to_clear_them(viewer, project):
    make_job(project)
    page = viewer.text(PATH, status="FAILED")
    assert "No matching jobs" in page
    assert "Clear filters" in page


def test_the_live_parts_are_the_same_markup_as_the_first_paint(viewer, project):
    make_job(project, status=JobStatus.RUNNING, started_at=timezone.now())
    whole = viewer.get(PATH, {"status": "RUNNING"}).content.decode()
    parts = viewer.get(f"{PATH}/live", {"status": "RUNNING"}).content.decode()
    names = re.findall(r' id="([^"]+)"', parts)
    assert {"job-chips", "job-rows"} <= set(names)
    assert all(f'id="{name}"' in whole for name in names)
    assert "<html" not in parts


@pytest.mark.parametrize("count", [1, 20])
def test_the_number_of_queries_does_not_grow_with_the_rows(
    viewer, project, count, django_assert_max_num_queries
):
    for _ in range(count):
        make_job(project)
    with django_assert_max_num_queries(20):
        viewer.get(PATH)


def test_headings_sort_one_way_then_the_other_then_newest_first_again(viewer, project):
    b, a = make_job(project, name="b"), make_job(project, name="a")

    def link(**query):
        html = viewer.get(PATH, query).content.decode()
        found = re.search(r'<a class="sorts" href="\?([^"]*)">Job</a>', html)
        return found and found[1].replace("&amp;", "&")

    assert link(status="QUEUED") == "status=QUEUED&sort=name"
    assert rows(viewer, sort="name") == [a.pk, b.pk]
    assert link(sort="name") == "sort=-name"
    assert rows(viewer, sort="-name") == [b.pk, a.pk]
    assert link(sort="-name") == ""
    assert 'aria-sort="ascending"' in viewer.get(PATH, {"sort": "name"}).content.decode()
    assert rows(viewer, sort="odd", since="never", reason="odd") == [a.pk, b.pk]


def test_labels_and_notes_are_shown_and_a_label_leads_to_its_jobs(viewer, project):
    job = make_job(project, labels={"team": "r l"}, note="bad seed")
    make_job(project)
    html = viewer.get(PATH).content.decode()
    assert "bad seed" in html and 'href="/rl/jobs?label=team%3Dr%20l"' in html
    assert ">team=r l</a>" in html
    assert rows(viewer, label="team=r l") == [job.pk]


def test_unfinished_jobs_come_first_on_request(viewer, project):
    waiting, ended = make_job(project), make_job(project, status=JobStatus.FAILED)
    assert rows(viewer) == [ended.pk, waiting.pk]
    assert rows(viewer, pin="1") == [waiting.pk, ended.pk]


def test_days_from_and_to_are_of_the_readers_zone_and_stay_so_in_the_live_parts(viewer, project):
    def submitted(moment):
        job = make_job(project)
        Job.objects.filter(pk=job.pk).update(created_at=moment)
        return job.pk

    submitted("2026-03-28T22:59:59Z")
    first = submitted("2026-03-28T23:00:00Z")  # Midnight in Berlin, before the clocks change.
    last = submitted("2026-03-29T21:59:59Z")  # And the end of that day, of 23 hours.
    submitted("2026-03-29T22:00:00Z")
    User.objects.filter(pk=viewer.user.pk).update(time_zone="Europe/Berlin")
    days = {"from": "2026-03-29", "to": "2026-03-29"}
    assert rows(viewer, **days) == [last, first]
    html = viewer.get(PATH, days).content.decode()
    live = unescape(re.search(r'data-live="([^"]+)"', html)[1])
    User.objects.filter(pk=viewer.user.pk).update(time_zone="UTC")
    assert re.findall(r'<tr id="job-(\d+)"', viewer.get(live).content.decode()) == [
        str(last),
        str(first),
    ]
    for nonsense in ("2026-02-30", "9999-12-31", "0001-01-01", "x"):
        assert viewer.get(PATH, {"from": nonsense, "to": nonsense}).status_code == 200
