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


def test_an_idle_cluster_is_terminated_unless_it_is_to_be_stopped():
    assert parse(reuse=True, idle={"minutes": 5}).portal.idle == Idle(5, "down")
    stop = {"minutes": 5, "then": "stop", "down_after": 60}
    assert parse(reuse=True, idle=stop).portal.idle == Idle(5, "stop", 60)


def test_idle_is_refused_for_a_cluster_that_ends_with_its_job():
    assert errors_of(idle={"minutes": 5}) == [("portal.idle", "conflict")]


def test_down_after_is_refused_where_nothing_is_stopped_before():
    idle = {"minutes": 5, "down_after": 60}
    assert errors_of(reuse=True, idle=idle) == [("portal.idle.down_after", "conflict")]


@pytest.mark.parametrize("portal", [{}, {"reuse": True}])
def test_a_job_may_end_by_the_idleness_of_its_gpus_whether_its_cluster_is_kept_or_not(portal):
    spec = parse(idle={"minutes": 5, "gpu_below": 10}, **portal)
    assert spec.portal.idle == Idle(5, "down", gpu_below=10)
    assert spec.to_dict()["portal"]["idle"] == {"minutes": 5, "then": "down", "gpu_below": 10}
    assert JobSpec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize("wrong", [0, 101, 2.5, "5 %"])
def test_gpu_below_is_a_whole_number_of_per_cent(wrong):
    found = errors_of(idle={"minutes": 5, "gpu_below": wrong})
    assert [path for path, _ in found] == ["portal.idle.gpu_below"]


def test_machines_that_go_with_their_job_are_not_switched_off_first():
    idle = {"minutes": 5, "gpu_below": 5, "then": "stop"}
    assert errors_of(idle=idle) == [("portal.idle.then", "conflict")]


def test_the_normal_form_names_them_only_where_they_were_given():
    plain = parse().to_dict()["portal"]
    assert not {"reuse", "idle", "cluster"} & set(plain)
    kept = parse(reuse=True, idle={"minutes": 5}, cluster="mp1-a-1-1")
    content = kept.to_dict()
    assert content["portal"]["idle"] == {"minutes": 5, "then": "down"}
    assert JobSpec.from_dict(content) == kept
    assert JobSpec.parse(content) == kept
