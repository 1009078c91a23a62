"""The job table: pages by cursor, filters, what the reader may do with each row."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from jobs.errors import InvalidCursorError, PermissionDeniedError
from jobs.ground import clock
from jobs.models import Job
from jobs.readers.job_filter import (
    JobFilter,
    matching_counts,
    matching_jobs,
    named_like,
    status_counts,
)
from jobs.readers.job_pages import SORT_WORDS, JobOrder
from jobs.readers.job_table import job_table
from jobs.statuses import JobKind, JobStatus, Role
from tests.factories import make_actor, make_attempt, make_job, make_project

pytestmark = pytest.mark.django_db

ALL = JobFilter()


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def member(project):
    return make_actor(project, Role.MEMBER)


def test_pages_forward_and_back_show_every_job_once_newest_first(project, member):
    made = [make_job(project).pk for _ in range(7)]
    seen, cursor, pages = [], None, []
    while True:
        page = job_table(member, project, ALL, cursor=cursor, limit=3)
        pages.append(page)
        seen += [row.id for row in page.rows]
        if page.next is None:
            break
        cursor = page.next
    assert seen == made[::-1]
    back = job_table(member, project, ALL, cursor=pages[-1].previous, limit=3)
    assert back.rows == pages[-2].rows
    assert pages[0].previous is None


def test_a_job_submitted_while_paging_moves_nothing(project, member):
    made = [make_job(project).pk for _ in range(4)]
    first = job_table(member, project, ALL, limit=2)
    make_job(project)
    second = job_table(member, project, ALL, cursor=first.next, limit=2)
    assert [row.id for row in second.rows] == [made[1], made[0]]


@pytest.mark.parametrize("cursor", ["x", "YWZ0ZXI6eA==", "c2lkZXdheXM6MQ==", "é", "A" * 500])
def test_a_cursor_that_was_never_issued_is_refused(project, member, cursor):
    with pytest.raises(InvalidCursorError):
        job_table(member, project, ALL, cursor=cursor)


def test_each_filter_keeps_what_it_names(project, member):
    mine = make_job(project, name="ppo", submitted_by=member.user, kind=JobKind.MONARCH)
    ended = make_job(project, name="sft-large", status=JobStatus.FAILED)

    def found(**fields) -> list[int]:
        return [row.id for row in job_table(member, project, JobFilter(**fields)).rows]

    assert found(status=("FAILED",)) == [ended.pk]
    assert found(status=("FAILED", "QUEUED")) == [ended.pk, mine.pk]
    assert found(user="me") == found(user=member.user.username) == [mine.pk]
    assert found(kind="monarch") == [mine.pk]
    assert found(q="LARGE") == [ended.pk]
    assert found(q=str(mine.pk)) == [mine.pk]
    assert found(name="ppo") == [mine.pk]
    assert found(q="9" * 40) == []


def test_another_projects_jobs_are_never_among_the_rows(project, member):
    make_job()
    assert job_table(member, project, ALL).rows == []
    with pytest.raises(PermissionDeniedError):
        job_table(member, make_project(), ALL)


def test_a_row_says_what_this_reader_may_do_with_it(project, member):
    own = make_job(project, submitted_by=member.user, status=JobStatus.RUNNING)
    make_job(project, status=JobStatus.FAILED)
    theirs, mine = job_table(member, project, ALL).rows
    assert (mine.id, mine.can_cancel, mine.can_delete) == (own.pk, True, False)
    assert (theirs.can_cancel, theirs.can_rerun, theirs.can_delete) == (False, True, False)
    assert not (mine.can_hold or mine.can_release or theirs.can_hold or theirs.can_release)
    maintainer = make_actor(project, Role.MAINTAINER)
    ended, running = job_table(maintainer, project, ALL).rows
    assert (ended.can_delete, running.can_cancel) == (True, True)


def test_a_row_says_whether_its_job_can_be_held_or_released(project, member):
    make_job(project, submitted_by=member.user)
    make_job(project, submitted_by=member.user, held=True)
    make_job(project)
    theirs, held, waiting = job_table(member, project, ALL).rows
    assert (waiting.can_hold, waiting.can_release) == (True, False)
    assert (held.can_hold, held.can_release) == (False, True)
    assert (theirs.can_hold, theirs.can_release) == (False, False)


def test_a_page_takes_the_same_number_of_queries_however_many_rows(
    project, member, django_assert_max_num_queries
):
    for _ in range(20):
        make_attempt(make_job(project, status=JobStatus.RUNNING))
    with django_assert_max_num_queries(7):
        page = job_table(member, project, ALL)
    assert {row.attempt for row in page.rows} == {1}


def test_counts_are_of_this_project_alone(project, member):
    make_job(project, status=JobStatus.FAILED)
    make_job(project)
    make_job(project)
    make_job()
    assert status_counts(member, project) == {"FAILED": 1, "QUEUED": 2}


def test_filters_of_the_request_the_reason_the_labels_and_the_time(project, member):
    old = make_job(project, queue_name="night", created_at=clock.now() - timedelta(days=3))
    waits = make_job(project, wait_reason="BUDGET", labels={"team": "rl", "note": ""})
    over = make_job(project, status=JobStatus.FAILED, stop_reason="BUDGET", backend_name="other")

    def found(**fields) -> list[int]:
        return [row.id for row in job_table(member, project, JobFilter(**fields)).rows]

    assert found(queue="night") == [old.pk]
    assert found(backend="other") == [over.pk]
    assert found(reason="BUDGET") == [over.pk, waits.pk]
    assert found(reason="OOM") == []
    assert found(labels=("team",)) == found(labels=("team=rl", "note=")) == [waits.pk]
    assert found(labels=("team=vision",)) == []
    assert found(since="24h") == [over.pk, waits.pk]
    assert found(until="24h") == [old.pk]
    # Where no job is newer, and the last moments that a date can hold.
    assert found(until="0s") == [over.pk, waits.pk, old.pk]
    last, whole = "9999-12-31T23:59:59", [over.pk, waits.pk, old.pk]
    assert found(until=f"{last}Z") == found(until=f"{last}+14:00") == whole
    assert found(since=f"{clock.now() - timedelta(days=4):%Y-%m-%d}", until="1d") == [old.pk]


def test_counts_respect_every_filter_but_the_status_and_stop_at_a_limit(
    project, member, monkeypatch
):
    for number in range(5):
        make_job(project, name=f"sweep-{number}", status=JobStatus.FAILED)
    make_job(project, name="other", status=JobStatus.FAILED)
    make_job(project, name="sweep-5")
    wanted = JobFilter(q="sweep", status=("QUEUED",))
    assert matching_counts(member, project, wanted) == {"FAILED": 5, "QUEUED": 1}
    monkeypatch.setattr("jobs.readers.job_filter.COUNT_LIMIT", 3)
    assert matching_counts(member, project, wanted) == {"FAILED": 4, "QUEUED": 1}


def test_a_table_is_sorted_both_ways_and_what_has_no_value_comes_last(project, member):
    now = clock.now()
    short, long, never = (
        make_job(project, name=name, status=JobStatus.FAILED, started_at=begun, ended_at=now)
        for name, begun in (
            ("b", now - timedelta(minutes=1)),
            ("C", now - timedelta(hours=1)),
            ("a", None),
        )
    )

    def order(sort: str) -> list[int]:
        return [row.id for row in job_table(member, project, ALL, JobOrder(sort)).rows]

    assert order("name") == [never.pk, short.pk, long.pk]
    assert order("-name") == [long.pk, short.pk, never.pk]
    assert order("duration") == [short.pk, long.pk, never.pk]
    assert order("-duration") == [long.pk, short.pk, never.pk]
    assert all(sorted(order(sort)) == [short.pk, long.pk, never.pk] for sort in SORT_WORDS)


def test_a_job_that_is_queued_again_is_not_sorted_as_a_long_one(project, member):
    now = clock.now()
    make_job(project, name="again", started_at=now - timedelta(days=1))
    make_job(project, name="ran", status=JobStatus.RUNNING, started_at=now - timedelta(minutes=1))
    rows = job_table(member, project, ALL, JobOrder("-duration")).rows
    assert [row.name for row in rows] == ["ran", "again"]


def test_unfinished_jobs_are_pinned_on_top_even_if_they_are_old(project, member, monkeypatch):
    monkeypatch.setattr("jobs.readers.job_pages.WINDOW", 3)
    running = make_job(project, status=JobStatus.RUNNING)
    ended = [make_job(project, status=JobStatus.FAILED).pk for _ in range(4)]
    waiting = make_job(project)
    pinned = JobOrder(pin=True)
    first = job_table(member, project, ALL, pinned, limit=2)
    assert [row.id for row in first.rows] == [waiting.pk, running.pk]
    second = job_table(member, project, ALL, pinned, limit=2, cursor=first.next)
    assert [row.id for row in second.rows] == [ended[3], ended[2]]
    assert second.next is None
    with pytest.raises(InvalidCursorError):
        job_table(member, project, ALL, cursor=first.next)


def test_parts_of_names_are_found_through_the_index(project, member):
    make_job(project, name="Größe-und-%_weite")
    for text in ("größe", "GRÖSSE-", "und-%_", "e-u", "%_"):
        found = job_table(member, project, JobFilter(q=text)).rows
        assert len(found) == (0 if text == "GRÖSSE-" else 1), text
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        plan = named_like(Job.objects.order_by(), "weite").explain()
    assert "job_by_name_part" in plan


@pytest.mark.slow
def test_a_rare_value_is_found_through_the_index_of_its_filter(project, member):
    rows = [
        Job(project=project, name="x", kind="plain", spec={}, backend_name="fake", status="FAILED",
            submitted_by=member.user, stop_reason="SETUP", ended_at=clock.now())
        for _ in range(1500)
    ]  # fmt: skip
    Job.objects.bulk_create(rows, batch_size=500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobs_job")
    expected = {
        "job_by_label_word": JobFilter(labels=("team=rl",)),
        "job_by_reason": JobFilter(reason="OOM"),
        "submitted_by": JobFilter(user="nobody"),
        "job_by_queue": JobFilter(queue="none"),
        "job_by_backend": JobFilter(backend="none"),
    }
    for index, wanted in expected.items():
        plan = matching_jobs(member, project, wanted).order_by("-pk")[:51].explain()
        assert index in plan, plan
