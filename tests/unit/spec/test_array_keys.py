"""depends_on, array and what goes with them: forms, normal form, and what is refused."""

from __future__ import annotations

import pytest

from monarch_client.spec import JobSpec
from monarch_client.spec.array_keys import combinations
from monarch_client.spec.dependency_keys import Needed
from monarch_client.spec.documents import documents_in
from tests.unit.spec.specs import errors_of

pytestmark = pytest.mark.feature("S2.6")


def source(**portal) -> dict:
    return {"name": "a", "run": "true", "envs": {"SEED": "7"}, "portal": portal}


def test_a_dependency_is_a_name_a_number_or_a_mapping():
    needs = ["prepare", 41, {"job": "warm", "after": "END"}, {"job": 42}]
    spec = JobSpec.parse(source(depends_on=needs))
    assert spec.portal.depends_on == (
        Needed("prepare"),
        Needed(41),
        Needed("warm", "end"),
        Needed(42),
    )
    assert JobSpec.parse(spec.to_dict()) == spec


def test_values_stay_as_they_were_written():
    text = "name: a\nrun: 'true'\nportal:\n  array: {lr: [1e-4, 1.10, yes]}\n  max_parallel: 2\n"
    spec = JobSpec.parse(text)
    assert spec.portal.array == {"lr": ["1e-4", "1.10", "yes"]}
    assert JobSpec.parse(spec.to_dict()) == spec


def test_the_last_name_changes_fastest():
    assert list(combinations({"a": ["1", "2"], "b": ["x", "y"]})) == [
        {"a": "1", "b": "x"},
        {"a": "1", "b": "y"},
        {"a": "2", "b": "x"},
        {"a": "2", "b": "y"},
    ]


@pytest.mark.parametrize(
    ("portal", "path", "code"),
    [
        ({"max_parallel": 2}, "portal.max_parallel", "conflict"),
        ({"array": {"seed": [1]}}, "portal.array.seed", "conflict"),
        ({"array": {"lr": [1], "LR": [2]}}, "portal.array.LR", "conflict"),
        ({"array": {"mportal_token": [1]}}, "portal.array.mportal_token", "bad_value"),
        ({"array": {"lr": []}}, "portal.array.lr", "bad_value"),
        ({"array": {"a": [*range(40)], "b": [*range(40)]}}, "portal.array", "too_large"),
        ({"array": {"lr": [[1]]}}, "portal.array.lr[0]", "wrong_type"),
        ({"depends_on": "prepare"}, "portal.depends_on", "wrong_type"),
        ({"depends_on": [{"after": "end"}]}, "portal.depends_on[0].job", "missing"),
        (
            {"depends_on": [{"job": "a", "after": "start"}]},
            "portal.depends_on[0].after",
            "bad_value",
        ),
        ({"if_dependency_fails": "ignore"}, "portal.if_dependency_fails", "bad_value"),
    ],
)
def test_what_cannot_be_meant_is_refused(portal, path, code):
    assert (path, code) in {(error.path, error.code) for error in errors_of(source(**portal))}


def test_no_variable_has_a_name_that_the_shell_sets_or_needs():
    taken = errors_of(source(array={"path": ["a"], "seconds": [1]}))
    assert [(error.path, error.message.partition(": ")[2]) for error in taken] == [
        ("portal.array.path", "the shell needs PATH to run commands; choose another name."),
        ("portal.array.seconds", "SECONDS is set by the shell itself; choose another name."),
    ]
    text = "run: x\nenvs: {PATH: /usr/bin, IFS: a}\nsecrets: {HOME: A}\n"
    assert {error.path for error in errors_of(text)} == {"envs.IFS", "secrets.HOME"}


def test_documents_keep_their_lines_and_empty_ones_are_no_job():
    text = "# two jobs\n---\nname: a\nrun: |\n  echo ---\n--- # the other\nname: b\n---\n"
    assert [(each.text.splitlines()[1], each.lines_before) for each in documents_in(text)] == [
        ("name: a", 1),
        ("name: b", 5),
    ]


@pytest.mark.parametrize("text", ["name: a\n", "---\nname: a\n", "", "name: a\n---\n# nothing\n"])
def test_one_document_is_left_as_it_is(text):
    assert [each.text for each in documents_in(text)] == [text]
