"""Quotas over REST: one for each subject; every error is reported."""

from __future__ import annotations

import json

import pytest

from jobs.models import Pool, Quota
from tests.factories import make_project, set_default_queue
from tests.integration.api.conftest import assert_problem, messages

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake"), pytest.mark.feature("P5.1")]


def test_a_second_time_changes_the_same_quota(root):
    make_project("rl2")
    for caps in ({"jobs": 1}, {"nodes": 4}):
        root.post("/quotas", {"project": "rl2", "caps": caps})
    assert Quota.objects.get().caps == {"nodes": 4}
    assert root.delete(f"/quotas/{Quota.objects.get().pk}").status_code == 204
    assert_problem(root.delete("/quotas/99"), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"caps": {"jobs": 1}}, {"project"}),
        ({"project": "rl", "queue": "nix", "caps": {}}, {"project", "queue", "caps"}),
        ({"project": "nix", "user": "nobody", "caps": {"jobs": 1}}, {"project", "user"}),
        ({"project": "rl", "user": "nobody", "per_person": True, "caps": {"x": 1}},
         {"user", "caps.x"}),
        ({"user": "nobody", "caps": {"jobs": 1}}, {"project", "user"}),
        ({"project": "rl", "pool": "nix", "caps": {"jobs": 1}}, {"pool"}),
        ({"queue": "default", "pool": "nix", "caps": {"jobs": 1}}, {"pool"}),
    ],
)  # fmt: skip
def test_every_error_of_a_quota_is_reported_at_once(root, project, body, paths):
    set_default_queue()
    assert set(messages(root.post("/quotas", body))) == paths
    assert not Quota.objects.exists()


@pytest.mark.feature("P5.4")
def test_a_project_has_an_own_part_which_stays_until_it_is_said_anew(root, project):
    def set_it(**body):
        answer = root.post("/quotas", {"project": "rl", **body})
        assert answer.status_code == 200, answer.content
        return [(each["what"], each["nominal"]) for each in answer.json()["amounts"]]

    caps = {"nodes": 8, "gpus:h100": 64}
    own = {"nodes": 4, "gpus:h100": 0}
    assert set_it(caps=caps, nominal=own) == [("nodes", 4), ("gpus:H100", 0)]
    assert Quota.objects.get().nominal == {"nodes": 4, "gpus:H100": 0}
    assert set_it(caps={**caps, "nodes": 4}) == [("nodes", 4), ("gpus:H100", 0)]
    reported = messages(root.post("/quotas", {"project": "rl", "caps": {"nodes": 3}}))
    assert set(reported) == {"nominal.nodes", "nominal.gpus:H100"}
    assert reported["nominal.nodes"] == ("Its own part is 4, more than the 3 that may run at once.")
    assert Quota.objects.get().caps["nodes"] == 4
    assert set_it(caps=caps, nominal={}) == [("nodes", None), ("gpus:H100", None)]


@pytest.mark.feature("P5.4")
@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"project": "rl", "caps": {"nodes": 2}, "nominal": {"nodes": 3, "x": 1, "gpus:A": -1}},
         {"nominal.nodes", "nominal.x", "nominal.gpus:A"}),
        ({"project": "nix", "caps": {"y": 2}, "nominal": {"jobs": 1}},
         {"project", "caps.y", "nominal.jobs"}),
        ({"project": "rl", "per_person": True, "caps": {"nodes": 2}, "nominal": {"nodes": 1}},
         {"nominal"}),
        ({"project": "rl", "user": "nobody", "caps": {"nodes": 2}, "nominal": {"nodes": 3}},
         {"user", "nominal", "nominal.nodes"}),
        ({"queue": "default", "caps": {"nodes": 2}, "nominal": {"nodes": 1}}, {"nominal"}),
    ],
)  # fmt: skip
def test_every_error_of_an_own_part_is_reported_at_once(root, project, body, paths):
    set_default_queue()
    assert set(messages(root.post("/quotas", body))) == paths
    assert not Quota.objects.exists()


@pytest.mark.feature("P5.4")
@pytest.mark.parametrize("nominal", [["nodes"], "nodes=8", 8])
def test_an_own_part_is_an_object(root, project, nominal):
    body = {"project": "rl", "caps": {"nodes": 8}, "nominal": nominal}
    answer = root.post("/quotas", body)
    assert answer.status_code == 400, answer.content
    assert "Give an object such as" in answer.content.decode()
    assert not Quota.objects.exists()


@pytest.mark.parametrize("caps", [["nodes"], "nodes=8", 8, [None, None]])
def test_amounts_are_an_object(root, project, caps):
    reported = 'Give an object such as {"nodes": 8, "gpus:H100": 64}.'
    for method, path, field in (
        ("POST", "/quotas", {"project": "rl"}),
        ("PUT", "/pools/big", {"backend": "fake"}),
    ):
        answer = root.send(method, path, {**field, "caps": caps})
        assert answer.status_code == 400, answer.content
        assert reported in json.dumps(answer.json(), ensure_ascii=False).replace('\\"', '"')
    assert not Quota.objects.exists() and not Pool.objects.exists()


def test_money_may_have_cents_and_everything_else_is_whole(root, project):
    answer = root.post("/quotas", {"project": "rl", "caps": {"usd_per_hour": 40.5, "jobs": 2}})
    assert answer.json()["amounts"] == [
        {"what": "jobs", "used": 0.0, "cap": 2.0, "nominal": None, "free": 2.0},
        {"what": "usd_per_hour", "used": 0.0, "cap": 40.5, "nominal": None, "free": 40.5},
    ]
    assert Quota.objects.get().caps == {"usd_per_hour": 40.5, "jobs": 2}
    wrong = root.post("/quotas", {"project": "rl", "caps": {"nodes": 1.5}})
    assert messages(wrong) == {"caps.nodes": "1.5 is no whole number from 0 to 1,000,000."}


@pytest.mark.parametrize("usd", [-1, "40", True, None, 2_000_000, 0.0000001, [], 10**400])
def test_what_is_no_amount_of_money_is_refused(root, project, usd):
    answer = root.post("/quotas", {"project": "rl", "caps": {"usd_per_hour": usd}})
    assert set(messages(answer)) == {"caps.usd_per_hour"}


def test_a_pool_counts_machines_and_no_money(root):
    body = {"backend": "fake", "caps": {"usd_per_hour": 40}}
    assert set(messages(root.send("PUT", "/pools/big", body))) == {"caps.usd_per_hour"}
