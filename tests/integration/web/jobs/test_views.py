"""Saved views on the page of the job table."""

from __future__ import annotations

from jobs.models import SavedView
from tests.factories import make_job
from tests.integration.web.conftest import text_of

PATH = "/rl/jobs"


def test_a_view_is_saved_marked_while_it_is_shown_and_deleted(member, viewer, project):
    make_job(project)
    form = {"name": "failures", "query": "status=FAILED&cursor=x", "shared": "true"}
    response = member.post(f"{PATH}/views", form, follow=True)
    assert response.redirect_chain == [(f"{PATH}?status=FAILED", 302)]
    assert "View failures is saved." in text_of(response)
    html = viewer.get(PATH, {"status": "FAILED"}).content.decode()
    assert 'href="?status=FAILED" aria-current="true"' in " ".join(html.split())
    assert "Save view" not in html
    view = SavedView.objects.get()
    assert viewer.post(f"{PATH}/views/delete", {"view": view.pk}).status_code == 403
    for number in (view.pk, view.pk, "x"):
        member.post(f"{PATH}/views/delete", {"view": number})
    assert not SavedView.objects.exists()


def test_a_view_of_everything_is_not_saved(member, project):
    response = member.post(f"{PATH}/views", {"name": "all", "query": ""}, follow=True)
    assert "Choose a filter or an order first" in text_of(response)


def test_an_address_with_too_many_parts_is_shown_but_not_saved(member, project):
    make_job(project)
    query = "&".join(["label=a"] * 101)
    assert member.get(f"{PATH}?{query}").status_code == 200
    response = member.post(f"{PATH}/views", {"name": "all", "query": query}, follow=True)
    assert "The query has too many parts." in text_of(response)
    assert not SavedView.objects.exists()
