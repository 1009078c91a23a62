"""REST of templates."""

from __future__ import annotations

import pytest

from jobs.models import Job, TemplateVersion
from jobs.statuses import Role
from tests.factories import TEMPLATE, make_member, make_project, make_template, make_user
from tests.integration.api.conftest import assert_problem, caller_for

PATH = "/projects/rl/templates"


@pytest.mark.feature("S2.5")
def test_one_is_saved_in_versions_filled_in_run_and_deleted(project, member):
    maintainer = caller_for(make_member(project, Role.MAINTAINER))
    saved = maintainer.send("PUT", f"{PATH}/grid", {"source": TEMPLATE}).json()
    assert (saved["version"], saved["scope"], saved["can_manage"]) == (1, "project", True)
    assert saved["parameters"]["properties"]["nodes"]["maximum"] == 8
    newer = TEMPLATE.replace("hello}", "hi}")
    for source, version in ((TEMPLATE, 1), (newer, 2)):
        answer = maintainer.send("PUT", f"{PATH}/grid", {"source": source}).json()
        assert answer["version"] == version
    (row,) = [each for each in member.get(PATH).json()["results"] if each["name"] == "grid"]
    assert (row["version"], row["can_manage"]) == (2, False)
    old = member.get(f"{PATH}/grid?version=1").json()
    assert (old["source"], [each["version"] for each in old["versions"]]) == (TEMPLATE, [2, 1])
    spec = member.post(f"{PATH}/grid/actions/fill-in", {"values": {"nodes": 3}}).json()["spec"]
    assert spec.startswith("# Template grid, version 2 (project)\n# A comment of the template.\n")
    made = member.post(f"{PATH}/grid/actions/run", {"values": {"nodes": "3"}, "version": 1})
    assert made.status_code == 201
    (job,) = made.json()["results"]
    assert (job["name"], job["num_nodes"]) == ("grid", 3)
    assert "echo hello from" in Job.objects.get(pk=job["id"]).spec_source
    assert maintainer.delete(f"{PATH}/grid").status_code == 204
    assert_problem(member.get(f"{PATH}/grid"), 404, "not_found")


def test_values_and_templates_that_do_not_fit_are_refused(project, member):
    make_template(project)
    body = assert_problem(
        member.post(f"{PATH}/grid/actions/run", {"values": {"nodes": 9, "nods": 1}}),
        422,
        "invalid_spec",
    )
    assert [row["path"] for row in body["errors"]] == ["values.nods", "values.nodes"]
    maintainer = caller_for(make_member(project, Role.MAINTAINER))
    for source in (
        "name: x",
        TEMPLATE.replace("grid", "other"),
        TEMPLATE.replace("${{ n", "${{ m"),
    ):
        answer = maintainer.send("PUT", f"{PATH}/grid", {"source": source})
        assert_problem(answer, 422, "invalid_spec")
    assert TemplateVersion.objects.count() == 1


def test_the_templates_of_a_project_come_before_those_of_all_projects(project, member):
    make_template(None, "torchrun", number=4)
    make_template(make_project("other"), "secret")
    rows = {row["name"]: row["scope"] for row in member.get(PATH).json()["results"]}
    assert rows["torchrun"] == "installation"
    assert rows["hello-mesh"] == "built-in"
    assert "secret" not in rows
    make_template(project, "torchrun")
    found = member.get(f"{PATH}/torchrun").json()
    assert (found["scope"], found["version"]) == ("project", 1)


def test_only_administrators_save_templates_of_all_projects(project):
    admin = caller_for(make_member(project, Role.ADMIN))
    root = caller_for(make_user(is_superuser=True))
    body = {"source": TEMPLATE}
    assert_problem(admin.send("PUT", "/templates/grid", body), 403, "permission_denied")
    assert root.send("PUT", "/templates/grid", body).json()["scope"] == "installation"
    assert admin.get("/templates/grid").json()["source"] == TEMPLATE
    assert_problem(admin.delete("/templates/grid"), 403, "permission_denied")
    assert root.delete("/templates/grid").status_code == 204


def test_a_template_that_an_earlier_release_stored_says_what_is_wrong_and_hides_no_other(
    project, member
):
    good = make_template(project)
    pattern = 'word: {title: Word, default: hello, pattern: "(?=h)[a-z]+"}'
    source = good.source.replace("word: {title: Word, default: hello}", pattern)
    make_template(project, "old", source=source)
    rows = {row["name"]: row["about"] for row in member.get(PATH).json()["results"]}
    assert rows["grid"] == "Says hello on every node."
    assert "not a regular expression of RE2" in rows["old"]
    assert member.get(f"{PATH}/old").json()["source"] == source
    refused = member.post(f"{PATH}/old/actions/run", {"values": {}})
    [error] = assert_problem(refused, 422, "invalid_spec")["errors"]
    assert "RE2" in error["message"]
    maintainer = caller_for(make_member(project, Role.MAINTAINER))
    refused = maintainer.send("PUT", f"{PATH}/grid", {"source": source})
    assert_problem(refused, 422, "invalid_spec")
