"""The page of a project's policies."""

from __future__ import annotations

from jobs.models import Project, Quota
from tests.factories import make_user
from tests.integration.web.conftest import browser_of, text_of

PATH = "/rl/settings/policies"


def test_it_gathers_limits_quotas_weight_and_laptops(viewer, admin, project):
    Project.objects.update(max_duration_s=7200, share_weight=2)
    Quota.objects.create(project=project, caps={"nodes": 8})
    page = viewer.text(PATH)
    assert "A job may run for 2 h" in page and "fair sharing : 2." in page
    assert "0 of 8 nodes" in page
    assert "Set limits" not in page
    assert "Allow laptops and shells in running jobs" in admin.text(PATH)


def test_an_administrator_of_the_installation_sets_limits(admin, project):
    root = browser_of(make_user(is_superuser=True))
    form = {"max_duration": "90m", "max_idle_minutes": "30"}
    assert root.post(PATH, form)["Location"] == PATH
    project.refresh_from_db()
    assert (project.max_duration_s, project.max_idle_minutes) == (5400, 30)
    assert 'value="90m"' in root.get(PATH).content.decode()
    assert "such as 12h" in text_of(root.post(PATH, {**form, "max_duration": "soon"}))
    assert admin.post(PATH, form).status_code == 403
    root.post(PATH, {})
    project.refresh_from_db()
    assert (project.max_duration_s, project.max_idle_minutes) == (None, None)
