"""The pages of templates: list, form, editor."""

from __future__ import annotations

import pytest

from jobs.models import Job, TemplateVersion
from tests.factories import TEMPLATE, make_template, make_user
from tests.integration.web.conftest import browser_of, text_of

PAGE = "/rl/templates/grid"


@pytest.mark.feature("S2.5")
def test_the_form_of_a_template_submits_its_job(project, member):
    make_template(project)
    assert "Hello on several nodes" in member.text("/rl/templates")
    page = member.get(PAGE).content.decode()
    assert 'type="number" name="p-nodes" value="2" step="1" min="1" max="8"' in page
    answer = member.post(PAGE, {"p-nodes": "3", "p-word": "hi", "key": "one"})
    job = Job.objects.get()
    assert answer["Location"] == f"/rl/jobs/{job.pk}"
    assert (job.spec["num_nodes"], job.name) == (3, "grid")
    assert "echo hi from" in job.spec["run"]
    member.post(PAGE, {"p-nodes": "3", "p-word": "hi", "key": "one"})
    assert Job.objects.count() == 1


def test_a_template_with_a_work_directory_has_the_upload_beside_it(project, member):
    make_template(project)
    assert "Upload code" not in member.text(PAGE)
    page = member.get("/rl/templates/torchrun").content.decode()
    assert page.index('name="p-workdir"') < page.index('data-fills="id_p-workdir"')


def test_a_value_that_does_not_fit_is_reported_at_its_field(project, member):
    make_template(project)
    answer = member.post(PAGE, {"p-nodes": "9", "p-word": "hi"})
    assert answer.status_code == 422
    assert "nodes must be a whole number from 1 to 8." in text_of(answer)
    assert 'value="9"' in answer.content.decode()
    assert not Job.objects.exists()


def test_a_filled_template_opens_in_the_editor(project, member):
    make_template(project)
    answer = member.post(PAGE, {"p-nodes": "5", "p-word": "hi", "as_yaml": "1"})
    page = answer.content.decode()
    assert 'action="/rl/jobs/new"' in page
    assert "# A comment of the template.\nname: grid\nnum_nodes: 5\n" in page


def test_a_default_that_the_form_did_not_change_stays_as_it_was_written(project, member):
    source = TEMPLATE.replace("type: integer, title: Nodes", "type: number").replace("2}", "2.0}")
    source = source.replace("nodes: ${{", "nodes: 2\nenvs:\n  A: ${{")
    make_template(project, source=source.replace("2.0", "2.00"))
    answer = member.post(PAGE, {"p-nodes": "2.0", "p-word": "hi", "as_yaml": "1"})
    assert "A: 2.00\n" in answer.content.decode()


def test_a_template_is_saved_changed_and_deleted_in_pages(project, maintainer):
    for number, source in enumerate((TEMPLATE, TEMPLATE + "# Changed.\n"), start=1):
        answer = maintainer.post("/rl/new-template", {"source": source})
        assert answer["Location"] == PAGE
        assert TemplateVersion.objects.filter(project=project).count() == number
    assert "Version 2" in maintainer.text(PAGE)
    assert "# Changed." in maintainer.get("/rl/new-template?template=grid").content.decode()
    refused = maintainer.post("/rl/new-template", {"source": TEMPLATE.replace("${{ n", "${{ m")})
    assert refused.status_code == 422
    assert "Line 10 There is no parameter modes. Did you mean nodes?" in text_of(refused)
    maintainer.post(f"{PAGE}/delete")
    assert not TemplateVersion.objects.exists()


def test_the_editor_checks_a_template_without_saving_it(project, maintainer):
    def check(source):
        return maintainer.post("/rl/new-template/check", source, content_type="text/plain").json()

    assert check(TEMPLATE) == {"valid": True, "errors": []}
    wrong = check(TEMPLATE.replace("${{ n", "${{ m"))
    assert [(row["line"], row["code"]) for row in wrong["errors"]] == [(10, "unknown_key")]
    assert not TemplateVersion.objects.exists()


def test_administrators_save_templates_of_all_projects(project, maintainer):
    root = browser_of(make_user(is_superuser=True))
    root.post("/rl/new-template", {"source": TEMPLATE, "scope": "all"})
    assert TemplateVersion.objects.get().project is None
    assert "All projects" in maintainer.text("/rl/templates")
    maintainer.post("/rl/new-template", {"source": TEMPLATE, "scope": "all"})
    assert TemplateVersion.objects.filter(project=project).count() == 1


def test_deleting_the_project_s_template_twice_keeps_that_of_all_projects(project):
    root = browser_of(make_user(is_superuser=True))
    make_template(project)
    make_template(None)
    root.post(f"{PAGE}/delete")
    again = root.post(f"{PAGE}/delete")
    assert TemplateVersion.objects.get().project is None
    assert again.status_code == 404
    assert "There is no template grid" in text_of(again)
