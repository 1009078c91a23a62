"""The job table: pages by cursor, filters, what the reader may do with each row."""

from __future__ import annotations

import pytest

from jobs.errors import InvalidCursorError, PermissionDeniedError
from jobs.readers.job_table import JobFilter, job_table, status_counts
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
