"""The key `secrets` names secrets of the project; their values are written nowhere."""

from __future__ import annotations

import pytest

from monarch_client.spec import InvalidSpecErrors, JobSpec, SpecCode
from monarch_client.spec.secret_keys import MOST_SECRETS


def read(text: str) -> dict[str, str]:
    return JobSpec.parse(f"run: env\n{text}").secrets


def errors_of(text: str):
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(f"run: env\n{text}")
    return caught.value.errors


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("secrets: [A, B]", {"A": "A", "B": "B"}),
        ("secrets: {HF_TOKEN: team_token}", {"HF_TOKEN": "team_token"}),
        ("secrets:\n  HF_TOKEN:\n  B: null\n  C: c", {"HF_TOKEN": "HF_TOKEN", "B": "B", "C": "c"}),
        ("secrets: {}", {}),
        ("secrets: []", {}),
        ("secrets:", {}),
    ],
)
def test_a_list_or_a_mapping_becomes_a_mapping(text, secrets):
    assert read(text) == secrets


def test_a_job_without_secrets_says_nothing_of_them():
    assert "secrets" not in JobSpec.parse("run: env").to_dict()
    assert JobSpec.parse("run: env\nsecrets: [A]").to_dict()["secrets"] == {"A": "A"}


@pytest.mark.parametrize(
    "value", ["hf-abc.def", '"two words"', "12345678", "true", "[zq9]", "{zq9: 1}", "3.14159", '""']
)
def test_a_value_in_place_of_a_name_is_refused_and_not_repeated(value):
    (error,) = errors_of(f"secrets:\n  HF_TOKEN: {value}")
    assert (error.line, error.path, error.code) == (3, "secrets.HF_TOKEN", SpecCode.BAD_VALUE.value)
    assert "`mportal secret set HF_TOKEN`" in error.message
    plain = value.strip('"[]{}: 1')
    assert not plain or plain not in error.message


def test_a_value_in_a_list_is_refused_at_its_line():
    (error,) = errors_of("secrets:\n  - A\n  - sk-live-123")
    assert (error.line, error.path) == (4, "secrets[1]")
    assert "sk-live" not in error.message


@pytest.mark.parametrize(
    "name", ["1A", "A-B", "MPORTAL_TOKEN", "SKYPILOT_X", "Mportal_x", "A" * 101]
)
def test_names_that_no_variable_can_have_or_that_are_taken_are_refused(name):
    (error,) = errors_of(f"secrets:\n  {name}: A")
    assert (error.line, error.code) == (3, SpecCode.BAD_VALUE.value)


def test_a_variable_is_set_once():
    (error,) = errors_of("envs: {A: x}\nsecrets:\n  A: B")
    assert (error.line, error.code) == (4, SpecCode.CONFLICT.value)


def test_there_is_a_most_number_of_them():
    names = [f"A{i}" for i in range(MOST_SECRETS + 1)]
    (error,) = errors_of(f"secrets: [{', '.join(names)}]")
    assert error.code == SpecCode.TOO_LARGE.value
    assert len(read(f"secrets: [{', '.join(names[1:])}]")) == MOST_SECRETS


def test_each_name_keeps_its_line():
    spec = JobSpec.parse("run: env\nsecrets:\n  - A\n  - B")
    assert (spec.line_of("secrets.A"), spec.line_of("secrets.B")) == (3, 4)
    spec = JobSpec.parse("run: env\nsecrets:\n  X: A\n  Y: B")
    assert (spec.line_of("secrets.X"), spec.line_of("secrets.Y")) == (3, 4)
