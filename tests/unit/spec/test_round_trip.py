"""A specification keeps its meaning through its normal form, JSON, YAML and the schema."""

from __future__ import annotations

import json

import jsonschema
import yaml
from hypothesis import assume, given, settings

from monarch_client.spec import InvalidSpecErrors, JobSpec, json_schema
from tests.unit.spec.strategies import SPECS

SCHEMA = jsonschema.Draft202012Validator(json_schema())


def parsed(source):
    try:
        return JobSpec.parse(source, admin=True)
    except InvalidSpecErrors:  # an integer of envs beyond what JSON carries
        assume(False)


@settings(max_examples=300, deadline=None)
@given(SPECS)
def test_from_dict_is_the_inverse_of_to_dict(source):
    spec = parsed(source)
    assert JobSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@settings(max_examples=200, deadline=None)
@given(SPECS)
def test_the_normal_form_is_itself_a_specification(source):
    spec = parsed(source)
    again = JobSpec.parse(spec.to_dict(), admin=True)
    assert again == spec
    assert again.to_dict() == spec.to_dict()


@settings(max_examples=200, deadline=None)
@given(SPECS)
def test_yaml_and_json_of_one_specification_mean_the_same(source):
    text = yaml.safe_dump(source, allow_unicode=True, sort_keys=False)
    assert JobSpec.parse(text, admin=True).to_dict() == parsed(source).to_dict()


@settings(max_examples=200, deadline=None)
@given(SPECS)
def test_whatever_the_parser_accepts_is_valid_by_the_schema(source):
    SCHEMA.validate(parsed(source).to_dict())
    SCHEMA.validate(source)
