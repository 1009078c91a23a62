"""Templates: typed parameters, and specifications that keep their comments."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

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
    assert 'name: "train-4"  # how many\nnum_nodes: 4\nenvs:\n' in text
    spec = JobSpec.parse(text)
    assert (spec.num_nodes, spec.workdir) == (4, None)
    assert spec.envs == {"LR": "3e-4", "DEBUG": "false"}
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


EVERYWHERE = """\
name: t
parameters:
  a: {}
---
run: |  # kept
  before
    ${{ a }}
  after

setup: >2-
   folded ${{ a }}
   # of the block
envs:
  PLAIN: ${{ a }} and more
  QUOTED: "${{ a }}"
  SINGLE: 'x ${{ a }}'
  FIRST: &first ${{ a }}
  SECOND: *first
list:
- - ${{ a }}
  - |+
    x${{ a }}

- {in flow: "${{ a }}"}
"${{ a }}": key
"""
LINE_ENDS = ["\u2028", "\u2029", "\x85", "\r"]
ODD = [*LINE_ENDS, *"\ufeff\xa0\U0001f389\t\n #:-|'\"\\{}[]&*!%@`a", "${{ a }}", "---", "..."]


@given(st.lists(st.sampled_from(ODD), min_size=1, max_size=12).map("".join))
@example("  leading")
@example("\t")
@example("x" * 1_100)
def test_a_value_stays_a_value_wherever_the_template_has_it(value):
    template = JobTemplate.read(EVERYWHERE)
    try:
        text = template.filled_in({"a": value})
    except InvalidSpecErrors as error:
        # YAML takes no longer keys, and no parser a key that is only a control character.
        assert len(value) > 1_000, error.errors
        return
    value = value.replace("\r\n", "\n")
    deep = value.replace("\n", "\n  ")
    folded = value.replace("\n", "\n ")
    expected = {
        "run": f"before\n  {deep}\nafter\n",
        "setup": f" folded {folded}\n # of the block",
        "envs": {
            "PLAIN": f"{value} and more",
            "QUOTED": value,
            "SINGLE": f"x {value}",
            "FIRST": value,
            "SECOND": value,
        },
        "list": [[value, f"x{value}\n\n"], {"in flow": value}],
        value: "key",
    }
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        assert yaml.load(text, Loader=loader) == expected
    assert "# kept" in text


def test_a_comment_below_a_block_does_not_become_a_line_of_it():
    source = "name: t\nparameters:\n  a: {}\n---\nrun: |\n      ${{ a }}\n    # below\nname: x\n"
    text = JobTemplate.parse(source).filled_in({"a": "one\ntwo"})
    assert text == 'run: "one\\ntwo\\n"\n    # below\nname: x\n'


def test_an_empty_value_leaves_its_entry_out_and_what_holds_nothing_else():
    header = 'name: t\nparameters:\n  a: {default: ""}\n  b: {default: x}\n---\n'
    cases = [
        ("run: x\nworkdir: ${{ a }}  # where\n", "run: x\n"),
        ("resources:\n  cpus: ${{ a }}\n  memory: ${{a}}\nrun: x\n", "run: x\n"),
        (
            "resources:\n  any_of:\n  - cpus: 4\n    infra: ${{ a }}\nrun: x\n",
            "resources:\n  any_of:\n  - cpus: 4\nrun: x\n",
        ),
        ("envs: &all\n  A: ${{ a }}\nrun: ${{ b }}\n", 'envs: &all\nrun: "x"\n'),
        ("run: x\nsetup: &s ${{ a }}\nname: *s\n", "run: x\nsetup: &s null\nname: *s\n"),
        ("workdir: ${{ a }}\nrun: x\n---\nsetup: ${{ a }}\nrun: y\n", "run: x\n---\nrun: y\n"),
    ]
    check_each(cases, lambda body, text: _is(JobTemplate.read(header + body).filled_in({}), text))


def _is(found: str, expected: str) -> None:
    assert found == expected


def test_numbers_and_choices_stay_as_they_were_written():
    parameters = """\
name: t
parameters:
  python: {default: 3.10}
  either: {choices: [3.10, 3.11, yes], default: 3.10}
  count: {type: integer, default: 1_000}
  rate: {type: number, default: 1.0e+3}
  small: {type: number, default: 3e-4}
  list: {type: list, default: [1.10, 1_0]}
---
run: x
"""
    names = ("python", "either", "count", "rate", "small", "list")
    body = "".join(f"{each}: ${{{{ {each} }}}}\n{each}_: '${{{{ {each} }}}}'\n" for each in names)
    text = JobTemplate.read(parameters + body).filled_in({})
    assert (
        text
        == """\
run: x
python: "3.10"
python_: "3.10"
either: "3.10"
either_: "3.10"
count: 1_000
count_: "1_000"
rate: 1.0e+3
rate_: "1.0e+3"
small: 0.0003
small_: "3e-4"
list: ["1.10", "1_0"]
list_: ["1.10", "1_0"]
"""
    )


def test_a_comment_of_the_script_is_no_comment_of_the_template():
    source = "name: t\nparameters:\n  a: {}\n---\n# ${{ b }}\nrun: |\n  # ${{ b }}\n  echo\n"
    assert messages(source) == [(7, "There is no parameter b.")]


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
    assert [each.default.value for each in template.parameters] == [["1", "2"], False]


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


@pytest.mark.parametrize(
    ("body", "value"),
    [
        pytest.param("run: " + "${{ a }}" * 150, "x" * 2_000, id="repeated"),
        pytest.param(f"run: |\n  set -e\n{' ' * 400}${{{{ a }}}}\n", "\n" * 700, id="indented"),
        pytest.param("#" * 256 * 1024 + "\nrun: ${{ a }}", "x", id="template"),
    ],
)
def test_a_text_that_would_be_too_large_is_refused_before_it_is_written(body, value):
    source = f"name: large\nparameters:\n  a:\n---\n{body}"

    with pytest.raises(InvalidSpecErrors, match="larger than 256 KiB"):
        JobTemplate.parse(source).filled_in({"a": value})


def test_of_many_unknown_parameters_the_first_are_named():
    found = messages("name: many\n---\n" + "run: ${{ a }}\n" * 1_000)

    assert (len(found), found[-1][0]) == (100, 102)
