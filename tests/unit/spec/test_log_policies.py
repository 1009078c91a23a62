"""portal.log_policies: what is accepted, and the normal form."""

from __future__ import annotations

import pytest

from jobs.statuses import LogAction
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import JobSpec
from monarch_client.spec.log_policy_keys import LOG_ACTIONS

NAN = {"name": "loss_is_nan", "pattern": "loss is (nan|inf)", "actions": ["annotate", "fail"]}


def parse(*policies: object) -> JobSpec:
    return JobSpec.parse({"run": "true", "portal": {"log_policies": list(policies)}})


def errors_of(*policies: object) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSpecErrors) as caught:
        parse(*policies)
    return [(error.path, error.code) for error in caught.value.errors]


def test_they_come_back_as_they_were_given():
    spec = parse(NAN, {"name": "cuda_oom", "actions": []})
    assert spec.to_dict()["portal"]["log_policies"] == [NAN, {"name": "cuda_oom", "actions": []}]
    assert JobSpec.from_dict(spec.to_dict()) == spec
    assert JobSpec.parse(spec.to_dict()) == spec
    assert "log_policies" not in JobSpec.parse({"run": "true"}).to_dict()["portal"]


@pytest.mark.parametrize(
    ("wrong", "path", "code"),
    [
        ({**NAN, "name": "Loss is NaN"}, "name", "bad_value"),
        ({**NAN, "pattern": ""}, "pattern", "bad_value"),
        ({**NAN, "pattern": "x" * 501}, "pattern", "too_large"),
        ({**NAN, "actions": ["stop"]}, "actions[0]", "bad_value"),
        ({**NAN, "action": "fail"}, "action", "unknown_key"),
        ({"name": "x", "pattern": "y"}, "actions", "missing"),
        ({"pattern": "y", "actions": ["fail"]}, "name", "missing"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(wrong, path, code):
    assert errors_of({**NAN, "name": "first"}, wrong) == [(f"portal.log_policies[1].{path}", code)]


def test_two_of_one_name_are_refused():
    assert errors_of(NAN, NAN) == [("portal.log_policies[1].name", "conflict")]


def test_there_are_at_most_twenty():
    many = [{**NAN, "name": f"rule{number}"} for number in range(21)]
    assert errors_of(*many) == [("portal.log_policies", "bad_value")]
    assert len(parse(*many[:20]).portal.log_policies) == 20


def test_client_and_portal_speak_of_the_same_actions():
    assert set(LOG_ACTIONS) == set(LogAction.values)
