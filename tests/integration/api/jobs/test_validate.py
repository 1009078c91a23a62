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


def test_each_error_of_several_documents_says_in_which_one_and_on_which_line_it_is(member):
    text = f"{YAML}---\nname: b\nrunn: x\n---\nname: c\nrun: x\nnum_nodes: two\n"
    body = member.post(PATH, text, content_type="application/yaml").json()
    assert not body["valid"]
    found = {(each["document"], each["line"], each["path"]) for each in body["errors"]}
    before = YAML.count("\n")
    assert found >= {(1, before + 3, "runn"), (2, before + 7, "num_nodes")}
    assert {document for document, _, _ in found} == {1, 2}


def test_several_documents_are_valid_together(member):
    text = f"{YAML}---\nname: b\nrun: x\nportal: {{array: {{seed: [1, 2]}}}}\n"
    body = member.post(PATH, text, content_type="application/yaml").json()
    assert (body["valid"], body["spec"], body["num_jobs"]) == (True, None, 3)
    assert body["summary"] == "3 jobs of 2 specifications"


def test_a_viewer_may_not_ask(viewer):
    response = viewer.post(PATH, YAML, content_type="application/yaml")
    assert_problem(response, 403, "permission_denied")
