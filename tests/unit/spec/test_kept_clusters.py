"""portal.reuse, portal.idle and portal.cluster: what goes together, and the normal form."""

from __future__ import annotations

import pytest

from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import JobSpec
from monarch_client.spec.portal_block import Idle


def parse(**portal):
    return JobSpec.parse({"run": "true", "portal": portal})


def errors_of(**portal):
    with pytest.raises(InvalidSpecErrors) as caught:
        parse(**portal)
    return [(error.path, error.code) for error in caught.value.errors]


def test_an_idle_cluster_goes_down_unless_it_is_to_be_stopped():
    assert parse(reuse=True, idle={"minutes": 5}).portal.idle == Idle(5, "down")
    stop = {"minutes": 5, "then": "stop", "down_after": 60}
    assert parse(reuse=True, idle=stop).portal.idle == Idle(5, "stop", 60)


def test_idle_is_refused_for_a_cluster_that_ends_with_its_job():
    assert errors_of(idle={"minutes": 5}) == [("portal.idle", "conflict")]


def test_down_after_is_refused_where_nothing_is_stopped_before():
    idle = {"minutes": 5, "down_after": 60}
    assert errors_of(reuse=True, idle=idle) == [("portal.idle.down_after", "conflict")]


def test_idleness_by_gpu_use_is_not_promised_yet():
    idle = {"minutes": 5, "gpu_below": 5}
    assert errors_of(reuse=True, idle=idle) == [("portal.idle.gpu_below", "not_enforced")]


def test_the_normal_form_names_them_only_where_they_were_given():
    plain = parse().to_dict()["portal"]
    assert not {"reuse", "idle", "cluster"} & set(plain)
    kept = parse(reuse=True, idle={"minutes": 5}, cluster="mp1-a-1-1")
    content = kept.to_dict()
    assert content["portal"]["idle"] == {"minutes": 5, "then": "down"}
    assert JobSpec.from_dict(content) == kept
    assert JobSpec.parse(content) == kept
