"""Accelerators are counted as SkyPilot makes them, however they are spelled."""

from __future__ import annotations

from typing import Any

import pytest

from monarch_client.spec import JobSpec
from monarch_client.spec.accelerators import MOST_ACCELERATORS, known_count, most_accelerators
from tests.unit.spec.specs import only_error, spec

pytestmark = pytest.mark.feature("P5.1")

BIG, SMALL = {"accelerators": "H100:8"}, {"accelerators": "A100:1"}


def resources(text: str) -> dict[str, Any]:
    """Return the `resources` of the specification once it was read."""
    return JobSpec.parse(f"run: x\nresources: {{{text}}}").resources


@pytest.mark.parametrize(
    "text",
    [
        "accelerators: H100:8",
        "accelerators: {H100: 8}",
        "accelerators: {H100: 8.0}",
        "accelerators: {H100:8}",
        "accelerators: {H100:8 , }",
        "accelerators: {'h100:8': null}",
        "accelerators: [H100:8]",
        "accelerators: '{H100:8}'",
        "any_of: [{accelerators: {H100:8}}]",
        "ordered: [{accelerators: {H100:8}}]",
        "accelerators: A100:1, any_of: [{accelerators: H100:8}]",
    ],
)
def test_eight_of_a_node_are_eight_however_they_are_spelled(text):
    assert most_accelerators(resources(text)) == ("H100", 8)
    assert known_count(resources(text)) == 8


@pytest.mark.parametrize(
    ("wanted", "counted"),
    [
        ({"accelerators": {"A100:1": None, "H100:8": None}}, ("H100", 8)),
        ({"accelerators": ["A100:1", "H100:8"]}, ("H100", 8)),
        ({"accelerators": ["A100:8", "H100:8"]}, ("A100", 8)),
        ({"accelerators": "{A100, H100:8}"}, ("H100", 8)),
        ({"ordered": [SMALL, BIG]}, ("H100", 8)),
        ({"any_of": [SMALL, BIG]}, ("H100", 8)),
        ({**SMALL, "any_of": [{"infra": "aws"}, BIG]}, ("H100", 8)),
        ({"any_of": [{"cpus": 4}, BIG]}, ("H100", 8)),
        ({"accelerators": {"H100": None}}, ("H100", 1)),
        ({"accelerators": "H100:0.5"}, ("H100", 1)),
        ({"cpus": 4}, ("", 0)),
    ],
)
def test_of_several_choices_the_one_with_most_counts(wanted, counted):
    assert most_accelerators(JobSpec.parse(spec(resources=wanted)).resources) == counted


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({}, 0),
        ({"ordered": [SMALL, BIG]}, None),
        ({"accelerators": ["A100:8", "H100:8"]}, 8),
        ({"any_of": [{"cpus": 4}, BIG]}, None),
        ({"instance_type": "m6i.large"}, 0),
        ({"instance_type": "p5.48xlarge", **BIG}, 8),
    ],
)
def test_a_count_is_known_where_no_choice_changes_it(wanted, count):
    assert known_count(JobSpec.parse(spec(resources=wanted)).resources) == count


@pytest.mark.parametrize("count", [1_000_000, 4_000_000_000, 1e300])
def test_a_mapping_counts_no_further_than_a_text(count):
    for wanted in ({"accelerators": {"H100": count}}, {"any_of": [{"accelerators": {"A": count}}]}):
        error = only_error(spec(resources=wanted))
        assert (error.code, "at most 999,999" in error.message) == ("bad_value", True)


def test_more_than_can_be_counted_over_all_nodes_is_refused():
    error = only_error(spec(num_nodes=10_000, resources={"accelerators": "H100:999999"}))
    assert (error.path, error.code) == ("resources.accelerators", "too_large")
    assert "9,999,990,000" in error.message
    most = MOST_ACCELERATORS // 10_000
    JobSpec.parse(spec(num_nodes=10_000, resources={"accelerators": {"H100": most}}))


def test_two_counts_of_one_type_are_refused():
    for wanted in ({"accelerators": {"H100:8": 4}}, {"ordered": [{"accelerators": {"A:8": 4}}]}):
        error = only_error(spec(resources=wanted))
        assert error.code == "conflict"
