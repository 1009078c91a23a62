"""/{project}/jobs/new."""

from __future__ import annotations

import pytest

from jobs.actions.jobs.submit import check_spec
from jobs.models import Job
from jobs.web.jobs.examples import EXAMPLES
from tests.factories import make_actor, make_job
from tests.integration.web.conftest import SOURCE, text_of

PATH = "/rl/jobs/new"


def test_a_good_spec_becomes_a_job_and_leads_to_its_page(member, project):
    response = member.post(PATH, {"source": SOURCE.replace("\n", "\r\n"), "key": "k1"})
    job = Job.objects.get()
    assert response["Location"] == f"/rl/jobs/{job.pk}"
    assert (job.name, job.spec_source, job.submitted_by) == ("hello", SOURCE, member.user)


def test_two_clicks_are_one_job(member):
    places = {member.post(PATH, {"source": SOURCE, "key": "k1"})["Location"] for _ in range(2)}
    assert len(places) == 1
    assert Job.objects.count() == 1


def test_a_key_that_cannot_be_stored_is_no_key(member):
    assert member.post(PATH, {"source": SOURCE, "key": "\0"}).status_code == 302


def test_every_error_is_listed_with_its_line_and_the_text_is_kept(member):
    source = "name: hello\nnum_node: 2\nrun: echo\nnonsense: 1\n"
    response = member.post(PATH, {"source": source})
    html = response.content.decode()
    assert response.status_code == 422
    assert "2 problems" in text_of(response)
    assert 'data-line="2"' in html and 'data-line="4"' in html
    assert '<li class="bad">2</li>' in html
    assert "num_node: 2" in html
    assert not Job.objects.exists()


def test_what_a_user_typed_is_text_never_markup(member):
    response = member.post(PATH, {"source": "name: </textarea><script>alert(1)</script>\n"})
    assert "<script>alert" not in response.content.decode()


def test_it_opens_with_an_example_or_with_the_spec_of_an_earlier_job(member, project):
    job = make_job(project, spec_source="name: earlier\nrun: echo\n")
    assert "name: hello-mesh" in member.text(PATH)
    assert "name: two-nodes" in member.text(PATH, example="plain")
    assert "name: earlier" in member.text(PATH, **{"from": job.pk})
    assert member.get(PATH, {"from": "999999"}).status_code == 404
    assert member.get(PATH, {"from": "9" * 40}).status_code == 404


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.slug)
def test_every_example_is_accepted_as_it_stands(project, example):
    assert check_spec(make_actor(project), project, example.source).spec.run


def test_a_viewer_may_not_submit(viewer, stranger):
    assert viewer.get(PATH).status_code == 403
    assert viewer.post(PATH, {"source": SOURCE}).status_code == 403
    assert stranger.post(PATH, {"source": SOURCE}).status_code == 404
    assert not Job.objects.exists()
