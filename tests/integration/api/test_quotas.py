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
