"""POST /projects/{slug}/jobs/validate: the verdict on a job, without the job."""

from __future__ import annotations

from jobs.models import Job
from tests.integration.api.conftest import YAML, assert_problem

PATH = "/projects/rl/jobs/validate"


def test_a_good_specification_comes_back_complete(member):
    body = member.post(PATH, YAML, content_type="application/yaml").json()
    assert (body["valid"], body["errors"]) == (True, [])
    assert body["spec"]["num_nodes"] == 1
    assert Job.objects.count() == 0


def test_a_bad_one_comes_back_with_its_errors(member):
    response = member.post(PATH, "runn: x", content_type="application/yaml")
    assert response.status_code == 200
    body = response.json()
    assert (body["valid"], body["spec"]) == (False, None)
    assert {error["path"] for error in body["errors"]} >= {"runn"}


def test_a_viewer_may_not_ask(viewer):
    response = viewer.post(PATH, YAML, content_type="application/yaml")
    assert_problem(response, 403, "permission_denied")
