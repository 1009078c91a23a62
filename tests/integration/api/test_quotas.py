"""Quotas over REST: one for each of whom it is for; every error is told."""

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
def test_every_error_of_a_quota_is_told_at_once(root, project, body, paths):
    set_default_queue()
    assert set(messages(root.post("/quotas", body))) == paths
    assert not Quota.objects.exists()


@pytest.mark.parametrize("caps", [["nodes"], "nodes=8", 8, [None, None]])
def test_amounts_are_an_object(root, project, caps):
    told = 'Give an object such as {"nodes": 8, "gpus:H100": 64}.'
    for method, path in (("POST", "/quotas"), ("PUT", "/pools/big")):
        answer = root.send(method, path, {"project": "rl", "backend": "fake", "caps": caps})
        assert answer.status_code == 400, answer.content
        assert told in json.dumps(answer.json(), ensure_ascii=False).replace('\\"', '"')
    assert not Quota.objects.exists() and not Pool.objects.exists()


def test_money_may_have_cents_and_everything_else_is_whole(root, project):
    answer = root.post("/quotas", {"project": "rl", "caps": {"usd_per_hour": 40.5, "jobs": 2}})
    assert answer.json()["amounts"] == [
        {"what": "jobs", "used": 0.0, "cap": 2.0, "free": 2.0},
        {"what": "usd_per_hour", "used": 0.0, "cap": 40.5, "free": 40.5},
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
