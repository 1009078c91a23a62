"""Files that are meant to hurt: refused at once, in little time and memory."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monarch_client.spec import InvalidSpecErrors, JobSpec
from tests.unit.spec.specs import only_error, spec

BOMB = "run: x\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
HOSTILE = {
    "aliases that multiply": (BOMB, "too_large"),
    "too many values": ("a: [" + "1," * 20_000 + "]", "too_large"),
    "a huge file": ("run: " + "x" * 300_000, "too_large"),
    "a huge file of wide letters": ("run: " + "ü" * 200_000, "too_large"),
    "deep lists": ("[" * 100_000, "too_deep"),
    "deep mappings": ("a: " + "{a: " * 50_000, "too_deep"),
    "deep blocks": ("- " * 100_000, "too_deep"),
    "an anchor in itself": ("a: &a [*a]", "yaml_syntax"),
    "an unknown alias": ("a: *b", "yaml_syntax"),
    "a Python object": ("run: !!python/object/apply:os.system [id]", "yaml_feature"),
    "a local tag": ("run: !secret x", "yaml_feature"),
    "a merge": ("a: &a {b: 1}\nc: {<<: *a}", "yaml_feature"),
    "two documents": ("run: x\n---\nrun: y", "yaml_feature"),
    "a list as a key": ("? [a, b]\n: c", "yaml_feature"),
    "a zero byte": ("run: x\x00", "bad_character"),
    "an escaped zero byte": ('run: "x\\0"', "bad_character"),
    "half a character": ("run: \ud800", "bad_character"),
    "an open bracket": ("run: [", "yaml_syntax"),
    "a tab": ("run:\n\tx: y", "yaml_syntax"),
    "nothing": ("", "wrong_type"),
    "a list": ("- a", "wrong_type"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_quickly_and_in_little_memory(name):
    text, code = HOSTILE[name]
    tracemalloc.start()
    began = time.process_time()
    error = only_error(text)
    spent, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.code == code
    assert spent < 5
    assert peak < 40 * 1024**2


def cyclic() -> dict[str, Any]:
    source = spec()
    source["resources"] = source
    return source


def wide(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value] * 10
    return value


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (cyclic(), "too_deep"),
        (spec(resources=wide(12)), "too_large"),
        (spec(run="x" * 300_000), "too_large"),
        (spec(envs={"A": "x\x00"}), "bad_character"),
        (spec(envs={"A": "\ud800"}), "bad_character"),
        (spec(envs={1: "x"}), "wrong_type"),
        (spec(num_nodes=float("nan")), "wrong_type"),
        (spec(num_nodes=10**100), "wrong_type"),
        (spec(name=object()), "wrong_type"),
        ([], "wrong_type"),
        (None, "wrong_type"),
    ],
)
def test_hostile_objects_are_refused(source, code):
    assert only_error(source).code == code


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec=None), max_size=400))
def test_arbitrary_text_raises_nothing_but_spec_errors(text):
    parse_or_errors(text)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["run", ": ", "\n", "  ", "- ", "portal", "meshes", "{", "}", "[", "]", ",", "1", "a",
             "&a ", "*a", "!t ", "|\n", ">", '"', "'", "#", "---\n", "?", "<<", "\t", "resources",
             "file_mounts", "/x", "null", "envs", "s3://b", "🚀"]
        ),
        max_size=40,
    ).map("".join)
)  # fmt: skip
def test_text_that_looks_like_yaml_raises_nothing_but_spec_errors(text):
    parse_or_errors(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=20,
)
KEYS = st.sampled_from(
    ["name", "run", "setup", "num_nodes", "workdir", "envs", "resources", "file_mounts", "portal",
     "config", "volumes", "secrets", "meshes", "retry", "any_of", "ports", "infra", "mesh_order"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=4)), st.booleans())
def test_arbitrary_objects_raise_nothing_but_spec_errors(source, admin):
    parse_or_errors(source, admin=admin)


def parse_or_errors(source: Any, **options: Any) -> None:
    try:
        parsed = JobSpec.parse(source, for_server=True, **options)
    except InvalidSpecErrors as error:
        assert error.errors
        assert all(each.message and each.code for each in error.errors)
    else:
        assert JobSpec.parse(parsed.to_dict(), **options) == parsed
