"""Actions on the selected jobs of the table: confirmation, outcomes, undo."""

from __future__ import annotations

import re

from jobs.models import Job
from jobs.statuses import JobStatus
from tests.factories import make_job
from tests.integration.web.conftest import text_of

BULK = "/rl/jobs/bulk"


def test_a_bulk_cancel_is_confirmed_then_done_and_reported_job_by_job(maintainer, project):
    jobs = [make_job(project, name=f"job-{n}") for n in range(3)]
    ended = make_job(project, name="over", status=JobStatus.FAILED)
    numbers = [job.pk for job in (*jobs, ended)]
    page = maintainer.post(BULK, {"action": "cancel", "job": numbers, "back": "status=QUEUED"})
    assert "Cancel 3 jobs?" in text_of(page)
    assert "Not affected" in text_of(page) and "over" in text_of(page)
    assert "3 have not started: they have no machines and cost nothing." in text_of(page)
    assert not Job.objects.filter(status=JobStatus.CANCELLED).exists()
    form = {"action": "cancel", "job": numbers, "sure": "yes", "back": "status=QUEUED"}
    response = maintainer.post(BULK, form, follow=True)
    assert response.redirect_chain == [(f"{BULK}/done", 302)]
    assert "3 jobs cancelled" in text_of(response)
    assert "has already ended (FAILED)" in text_of(response)
    assert 'href="/rl/jobs?status=QUEUED"' in response.content.decode()
    assert Job.objects.filter(status=JobStatus.CANCELLED).count() == 3


def test_held_jobs_are_released_by_the_undo_of_the_outcomes(maintainer, project):
    numbers = [make_job(project).pk for _ in range(2)]
    response = maintainer.post(BULK, {"action": "hold", "job": numbers}, follow=True)
    assert "2 jobs held" in text_of(response)
    form = response.content.decode().partition('value="release"')[2].partition("</form>")[0]
    undone = re.findall(r'name="job" value="(\d+)"', form)
    maintainer.post(BULK, {"action": "release", "sure": "yes", "job": undone})
    assert not Job.objects.filter(held=True).exists()


def test_priorities_are_asked_for_set_and_restored(maintainer, project):
    jobs = [make_job(project, priority=priority) for priority in (10, 20)]
    numbers = [job.pk for job in jobs]
    form = {"action": "prioritize", "job": numbers}
    assert 'name="priority"' in maintainer.post(BULK, form).content.decode()
    response = maintainer.post(BULK, {**form, "sure": "yes", "priority": "80"}, follow=True)
    assert set(Job.objects.values_list("priority", flat=True)) == {80}
    restored = [f"{job.pk}:{job.priority}" for job in jobs]
    assert all(f'value="{value}"' in response.content.decode() for value in restored)
    maintainer.post(BULK, {"action": "prioritize", "sure": "yes", "job": restored})
    assert sorted(Job.objects.values_list("priority", flat=True)) == [10, 20]


def test_a_request_without_jobs_or_with_no_action_changes_nothing(maintainer, project):
    job = make_job(project)
    assert "Select jobs first." in text_of(maintainer.post(BULK, {"action": "hold"}, follow=True))
    back = "status=QUEUED,RUNNING&q=" + "x" * 3000
    for form in ({"action": "dance"}, {}):
        response = maintainer.post(BULK, {**form, "job": [job.pk], "back": back}, follow=True)
        assert response.redirect_chain == [(f"/rl/jobs?{back[:2000]}", 302)]


def test_rows_have_boxes_and_the_bar_has_only_actions_that_are_allowed(viewer, member, project):
    make_job(project)
    for browser, acts in ((member, True), (viewer, False)):
        html = browser.get("/rl/jobs").content.decode()
        assert "selectable" in html and "data-compare" in html
        assert ('name="action"' in html) == acts


def test_the_number_of_queries_of_a_confirmation_does_not_grow(
    maintainer, project, django_assert_max_num_queries
):
    numbers = [make_job(project).pk for _ in range(20)]
    with django_assert_max_num_queries(20):
        maintainer.post(BULK, {"action": "cancel", "job": numbers})


def test_selected_jobs_are_labeled_and_a_wrong_label_is_explained(member, project):
    job = make_job(project, labels={"old": "1"})
    form = {"action": "label", "job": [job.pk], "sure": "yes"}
    member.post(BULK, {**form, "labels": "team=rl, old-"})
    assert Job.objects.get().labels == {"team": "rl"}
    assert 'name="labels"' in member.post(BULK, form).content.decode()
    response = member.post(BULK, {**form, "labels": "te am"}, follow=True)
    assert "write name=value" in text_of(response)


def test_labels_are_restored_by_the_undo_and_a_repeated_rerun_is_one_job(maintainer, project):
    jobs = [make_job(project, labels={"team": "rl"}), make_job(project)]
    form = {"action": "label", "job": [job.pk for job in jobs], "sure": "yes"}
    html = maintainer.post(BULK, {**form, "labels": "team=x"}, follow=True).content.decode()
    restored = [f"{jobs[0].pk}:team=rl", f"{jobs[1].pk}:team-"]
    assert all(f'value="{value}"' in html for value in restored)
    maintainer.post(BULK, {"action": "label", "sure": "yes", "job": restored})
    assert [job.labels for job in Job.objects.order_by("pk")] == [{"team": "rl"}, {}]
    form = {"action": "rerun", "job": [jobs[0].pk]}
    key = re.search(r'name="key" value="(\w+)"', maintainer.post(BULK, form).content.decode())[1]
    for _ in range(2):
        maintainer.post(BULK, {**form, "sure": "yes", "key": key})
    assert Job.objects.filter(rerun_of=jobs[0]).count() == 1


def test_a_mistake_on_the_confirmation_keeps_the_selection_the_text_and_the_filters(
    maintainer, project
):
    job = make_job(project)
    for action, name, text in (("label", "labels", "te am"), ("prioritize", "priority", "1000")):
        form = {"action": action, "job": [job.pk], "sure": "yes", "back": "status=QUEUED"}
        html = maintainer.post(BULK, {**form, name: text}).content.decode()
        assert 'role="alert"' in html
        assert f'value="{text}"' in html and f'name="job" value="{job.pk}"' in html
        assert 'name="back" value="status=QUEUED"' in html
