"""Templates: typed parameters, and specifications that keep their comments."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec import JobSpec
from monarch_client.spec.templates import JobTemplate
from tests.each_case import check_each

HEADER = """\
name: train
parameters:
  nodes: {type: integer, minimum: 1, maximum: 8, default: 2}
  lr: {type: number, default: 0.1}
  precision: {choices: [bf16, fp32], default: bf16}
  debug: {type: boolean, default: false}
  seeds: {type: list, minimum: 1, default: [a, b]}
  script: {multiline: true, default: echo hello}
  workdir: {default: ""}
"""
BODY = """\
# Comments stay, and so does ${{ nodes }} in them.
name: train-${{ nodes }}  # how many
num_nodes: ${{ nodes }}
workdir: ${{ workdir }}
envs:
  LR: "${{ lr }}"
  DEBUG: "${{ debug }}"
run: |
  set -e
    ${{ script }}
  echo ${{ precision }}
portal:
  array:
    seed: ${{ seeds }}
"""
TEMPLATE = f"{HEADER}---\n{BODY}"


def filled(**values: Any) -> str:
    return JobTemplate.parse(TEMPLATE).filled_in(values)


def messages(source: str) -> list[tuple[int | None, str]]:
    with pytest.raises(InvalidSpecErrors) as caught:
        JobTemplate.parse(source)
    return [(error.line, error.message) for error in caught.value.errors]


@pytest.mark.feature("S2.5")
def test_values_are_set_by_their_types_and_comments_stay():
    text = filled(nodes="4", lr="3e-4", script="first\n  second: 'x'", seeds="1, 2")
    assert text.startswith("# Comments stay, and so does ${{ nodes }} in them.\n")
    assert 'name: "train-4"  # how many\nnum_nodes: 4\nworkdir: null\n' in text
    spec = JobSpec.parse(text)
    assert (spec.num_nodes, spec.workdir) == (4, None)
    assert spec.envs == {"LR": "0.0003", "DEBUG": "false"}
    assert spec.run == "set -e\n  first\n    second: 'x'\necho bf16\n"
    assert spec.portal.array == {"seed": ["1", "2"]}


def test_a_value_can_not_change_the_structure_of_the_specification():
    def check(value: str) -> None:
        text = filled(workdir=value, script=value)
        spec = JobSpec.parse(text)
        assert spec.workdir == value
        assert spec.portal.priority == 50
        assert spec.run.endswith("echo bf16\n")

    check_each(
        ["./a\nportal: {priority: 90}", './"x', "./x: y # z", "./a\n\n  b", "./${{ nodes }}"], check
    )


def test_values_that_do_not_fit_are_reported_together():
    with pytest.raises(InvalidSpecErrors) as caught:
        filled(nodes=9, lr="fast", precision="fp8", debug="maybe", seeds="", nodse=1)
    found = {error.path: error.message for error in caught.value.errors}
    assert found["values.nodes"] == "nodes must be a whole number from 1 to 8."
    assert found["values.precision"] == "precision must be one of bf16, fp32."
    assert set(found) == {
        f"values.{name}" for name in ("nodes", "lr", "precision", "debug", "nodse")
    }


def test_the_schema_accepts_what_the_template_accepts():
    schema = JobTemplate.parse(TEMPLATE).schema()
    cases = [
        ({"nodes": 3}, True),
        ({"nodes": 0}, False),
        ({"nodes": "x"}, False),
        ({"lr": 0.5, "debug": True, "seeds": ["x"]}, True),
        ({"seeds": []}, False),
        ({"precision": "fp8"}, False),
        ({"other": 1}, False),
    ]

    def check(values: dict[str, Any], fits: bool) -> None:
        assert jsonschema.Draft202012Validator(schema).is_valid(values) == fits
        try:
            filled(**values)
        except InvalidSpecErrors:
            assert not fits
        else:
            assert fits

    check_each(cases, check)


def test_an_empty_default_is_in_the_schema_since_it_makes_a_parameter_optional():
    header = 'name: train\nparameters:\n  note: {default: ""}\n  seeds: {type: list, default: []}\n'
    properties = JobTemplate.parse(f"{header}---\nrun: echo hello\n").schema()["properties"]
    assert (properties["note"]["default"], properties["seeds"]["default"]) == ("", [])


def test_a_parameter_without_default_is_required():
    source = TEMPLATE.replace("default: 0.1", "about: How fast it learns.")
    template = JobTemplate.parse(source)
    assert template.schema()["required"] == ["lr"]
    with pytest.raises(InvalidSpecErrors, match="lr is missing: How fast it learns"):
        template.filled_in({})


def test_errors_of_a_template_name_its_lines():
    cases = [
        ("name: train\nrun: x\n", None, "A template has two parts"),
        (TEMPLATE.replace("${{ lr }}", "${{ lrr }}"), 16, "no parameter lrr. Did you mean lr?"),
        (TEMPLATE.replace("maximum: 8", "maximum: 1"), 3, "its default does not fit"),
        (TEMPLATE.replace("type: number", "type: nummer"), 4, "must be one of string"),
        (TEMPLATE.replace("name: train\n", "nam: train\n", 1), 1, "no key 'nam'"),
        (TEMPLATE.replace("num_nodes:", "num_node:"), None, "no key 'num_node'"),
        (TEMPLATE.replace("choices: [bf16, fp32]", "pattern: '('"), 5, "not a regular expression"),
    ]

    def check(source: str, line: int | None, words: str) -> None:
        found = messages(source)
        assert any(at == line and words in message for at, message in found), found

    check_each(cases, check)


def test_a_body_that_yaml_does_not_read_is_refused_whatever_its_parameters():
    for needed in ("{}", "{default: x}"):
        header = f"name: t\nparameters:\n  a: {needed}\n---\n"
        line, message = messages(f'{header}name: x\nrun: "${{{{ a }}}}\n')[0]
        assert "not valid YAML" in message
        line, message = messages(f"{header}run: ${{{{ a }}}} \x07\n")[0]
        assert (line, "control character" in message) == (5, True)


def test_a_default_has_the_type_of_its_parameter():
    parameters = "  a: {type: list, default: [1, 2]}\n  b: {type: boolean, default: 'no'}\n"
    template = JobTemplate.parse(f"name: t\nparameters:\n{parameters}---\nrun: echo ${{{{ b }}}}\n")
    assert [each.default for each in template.parameters] == [["1", "2"], False]


@pytest.mark.timeout(20)
def test_a_pattern_takes_no_longer_than_its_value_is_long():
    parameter = "a: {pattern: '(a+)+', default: x}"
    value = "a" * 5_000 + "!"
    source = f"name: t\nparameters:\n  {parameter}\n---\nrun: echo ${{{{ a }}}}\n"
    assert "its default does not fit" in messages(source.replace("x}", f"'{value}'}}"))[0][1]
    template = JobTemplate.parse(source.replace("x}", "aa}"))
    with pytest.raises(InvalidSpecErrors, match=r"matches \(a\+\)\+"):
        template.values_of({"a": value})


def test_a_pattern_that_only_backtracking_reads_is_refused():
    source = "name: t\nparameters:\n  a: {pattern: '(?=a)a'}\n---\nrun: echo ${{ a }}\n"
    assert "parameters.a: pattern is not a regular expression of RE2" in messages(source)[0][1]
