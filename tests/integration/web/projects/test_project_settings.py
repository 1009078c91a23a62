"""A project's settings page: names, archive, delete; and old addresses of a renamed project."""

from __future__ import annotations

from jobs.actions.projects.close_projects import archive_project
from jobs.actions.projects.make_project import rename_project
from jobs.models import Membership, Project
from jobs.permissions import Actor
from jobs.statuses import JobStatus, Role
from tests.factories import make_job, make_project
from tests.integration.web.conftest import text_of


def test_an_admin_renames_the_project_and_old_addresses_lead_to_the_new_ones(admin, project):
    job = make_job(project, status=JobStatus.SUCCEEDED)
    answer = admin.post("/rl/settings", {"slug": "robots", "name": "Robots"})
    assert answer["Location"] == "/robots/settings"
    old = admin.get(f"/rl/jobs/{job.pk}?x=1")
    assert (old.status_code, old["Location"]) == (302, f"/robots/jobs/{job.pk}?x=1")
    assert admin.get("/rl")["Location"] == "/robots"
    assert admin.get(f"/rl/jobs/{job.pk}/live").status_code == 200


def test_every_page_of_a_renamed_project_leads_on(admin, project):
    rename_project(Actor(admin.user), project, slug="robots")
    for page in ("jobs", "jobs/new", "members", "machines", "queue", "secrets", "usage"):
        answer = admin.get(f"/rl/{page}")
        assert (answer.status_code, answer.get("Location")) == (302, f"/robots/{page}"), page


def test_a_name_that_does_not_do_is_said_beside_its_field(admin, project):
    make_project("other")
    for slug, words in (("other", "already"), ("settings", "reserved"), ("No", "is no name")):
        page = text_of(admin.post("/rl/settings", {"slug": slug, "name": "RL"}))
        assert words in page, slug
    assert Project.objects.filter(slug="rl").exists()


def test_an_admin_allows_laptops_and_refuses_them_again(admin, project):
    page = text_of(admin.post("/rl/settings/laptops", {"allowed": "yes"}, follow=True))
    assert "Laptops may attach to running jobs." in page
    assert Project.objects.get(slug="rl").laptops_may_attach
    page = text_of(admin.post("/rl/settings/laptops", follow=True))
    assert "Allow laptops and shells in running jobs" in page
    assert not Project.objects.get(slug="rl").laptops_may_attach


def test_all_tabs_of_the_settings_have_one_heading_and_one_width(admin):
    for tab in ("settings", "members", "secrets", "settings/budget", "settings/policies"):
        html = admin.get(f"/rl/{tab}").content.decode()
        assert "<h1>Settings</h1>" in html, tab
        assert '<div class="stack settings">' in html, tab


def test_an_archived_project_says_so_and_lists_leave_it_out(admin, project):
    Membership.objects.create(project=make_project("alpha"), user=admin.user, role=Role.VIEWER)
    admin.post("/rl/settings/archive")
    page = admin.get("/rl/jobs")
    assert "Project rl is archived" in text_of(page)
    assert b'href="/rl/jobs/new"' not in page.content
    assert "rl Admin" not in admin.text("/alpha/jobs")
    assert "Project rl is archived" not in admin.text("/alpha/jobs")
    assert admin.get("/")["Location"] == "/alpha"
    assert "Archived Project Name Role Settings rl" in admin.text("/settings/projects")
    admin.post("/rl/settings/unarchive")
    assert "archived" not in admin.text("/rl/jobs")


def test_what_keeps_a_project_from_being_archived_is_said(admin, project):
    make_job(project)
    page = text_of(admin.post("/rl/settings/archive", follow=True))
    assert "1 job has not ended in project rl." in page


def test_deleting_takes_the_name_typed(admin, project):
    page = text_of(admin.post("/rl/settings/delete", {"confirm": "RL"}))
    assert "Type the project's name, rl" in page.replace("&#x27;", "'")
    answer = admin.post("/rl/settings/delete", {"confirm": "rl"}, follow=True)
    assert "Project rl was deleted." in text_of(answer)
    assert admin.get("/rl/jobs").status_code == 404


def test_others_see_what_the_project_is_and_change_nothing(viewer, project, admin):
    archive_project(Actor(admin.user), project)
    page = viewer.text("/rl/settings")
    assert "Archived." in page
    assert "Delete the project" not in page
