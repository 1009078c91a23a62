"""Saved views of the job table: /projects/{slug}/views."""

from __future__ import annotations

from jobs.policies.table_queries import SORT_NAMES
from jobs.readers.job_pages import SORTS
from tests.integration.api.conftest import assert_problem

PATH = "/projects/rl/views"


def names(caller):
    return [view["name"] for view in caller.get(PATH).json()["results"]]


def test_a_private_view_is_its_owners_and_a_shared_one_everyones(member, maintainer, viewer):
    body = {"name": "failures", "query": "status=FAILED&cursor=abc&odd=1&label=team%3Drl"}
    view = member.post(PATH, body).json()
    assert view["query"] == "status=FAILED&label=team%3Drl"
    assert view["url"].endswith("/rl/jobs?status=FAILED&label=team%3Drl")
    member.post(PATH, {"name": "all mine", "query": "user=me", "shared": True})
    assert names(member) == ["all mine", "failures"]
    assert names(viewer) == ["all mine"]
    again = member.post(PATH, {**body, "shared": True}).json()
    assert again["id"] == view["id"]
    assert names(viewer) == ["all mine", "failures"]
    path = f"{PATH}/{view['id']}"
    assert_problem(maintainer.delete(path), 404, "not_found")
    assert member.delete(path).status_code == 204


def test_admins_delete_views_that_others_share_but_see_no_private_ones(member, admin):
    private = member.post(PATH, {"name": "a", "query": "user=me"}).json()
    shared = member.post(PATH, {"name": "b", "query": "user=me", "shared": True}).json()
    assert_problem(admin.delete(f"{PATH}/{private['id']}"), 404, "not_found")
    assert admin.delete(f"{PATH}/{shared['id']}").status_code == 204


def test_a_view_needs_a_name_and_something_to_show(member):
    assert_problem(member.post(PATH, {"name": " ", "query": "user=me"}), 400, "invalid_request")
    assert_problem(member.post(PATH, {"name": "a", "query": "odd=1"}), 422, "invalid_view")


def test_a_view_with_a_word_that_no_table_knows_is_refused(member):
    for query, words in (
        ("status=RUNNING,NOPE", "There is no status NOPE; there are QUEUED"),
        ("kind=x", "There is no kind x"),
        ("reason=x", "There is no reason x"),
        ("sort=size", "There is no sort size; there are status, name"),
        ("since=soon", "since must be an ISO time, or a duration such as 24h."),
        ("to=1 May", "to must be a day"),
    ):
        answer = member.post(PATH, {"name": "a", "query": query})
        assert_problem(answer, 422, "invalid_view")
        assert words in answer.json()["detail"]
    good = "status=FAILED,SUCCEEDED&sort=-ended&since=24h&from=2026-03-01&reason=oom"
    assert member.post(PATH, {"name": "a", "query": good}).status_code == 201
    assert tuple(SORTS) == SORT_NAMES
