"""The tables behind parser, schema and reference: complete, and true to each other."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from monarch_client.spec import JobSpec, SpecCode, json_schema
from monarch_client.spec.tables import Key, Tier
from tests import spec_documents
from tests.each_case import check_each
from tests.spec_documents import all_keys, page_text, schema_text
from tests.unit.spec.specs import errors_of, nested

KEYS = dict(all_keys())
ACCEPTED = sorted(path for path, key in KEYS.items() if not key.is_refused)
REFUSED = sorted(path for path, key in KEYS.items() if key.is_refused)
ADMINS = sorted(path for path, key in KEYS.items() if key.tier is Tier.ADMIN)
REFUSAL_CODES = {Tier.PORTAL: SpecCode.SET_BY_PORTAL, Tier.LATER: SpecCode.NOT_ENFORCED}
# Keys that make sense only beside another.
COMPANIONS = {
    "portal.gateway": ("portal", {"meshes": {"trainers": 2}}),
    "portal.mesh_order": ("portal", {"meshes": {"generators": 1, "trainers": 1}}),
    "workdir.ref": ("workdir", {"url": "https://github.com/org/repo.git"}),
    "config.hooks[].events": ("config.hooks", {"run": "sync.sh"}),
    "config.hooks[].timeout": ("config.hooks", {"run": "sync.sh"}),
    "portal.max_parallel": ("portal", {"array": {"lr": ["1e-4"]}}),
    "portal.depends_on[].after": ("portal.depends_on", {"job": "prepare"}),
    "portal.idle": ("portal", {"reuse": True}),
    "portal.idle.minutes": ("portal", {"reuse": True}),
    "portal.concurrency.max": ("portal", {"concurrency": {"group": "eval", "max": 2}}),
    "portal.idle.then": ("portal", {"reuse": True, "idle": {"minutes": 10, "then": "stop"}}),
    "portal.idle.gpu_below": ("portal", {"idle": {"minutes": 10, "gpu_below": 5}}),
    "portal.log_policies[].name": (
        "portal.log_policies",
        {"pattern": "loss is nan", "actions": ["fail"]},
    ),
    "portal.log_policies[].pattern": (
        "portal.log_policies",
        {"name": "loss_is_nan", "actions": ["fail"]},
    ),
    "portal.log_policies[].actions": (
        "portal.log_policies",
        {"name": "loss_is_nan", "pattern": "loss is nan"},
    ),
    "portal.driver": ("portal", {"meshes": {"generators": 2}}),
    "portal.idle.down_after": (
        "portal",
        {"reuse": True, "idle": {"minutes": 10, "then": "stop", "down_after": 60}},
    ),
}


def example_of(path: str, key: Key) -> dict:
    source = nested(path, key.example)
    place, values = COMPANIONS.get(path, ("", {}))
    target: Any = source
    for part in filter(None, place.split(".")):
        target = target[part]
    if place:
        (target[0] if isinstance(target, list) else target).update(values)
    if path == "portal.driver":
        source.pop("run")
    if path.startswith("file_mounts.<name>."):
        source["file_mounts"]["/mnt/data"].setdefault("source", "s3://bucket")
        if "mount_cached" in path or path.endswith(".type"):
            source["file_mounts"]["/mnt/data"]["mode"] = "MOUNT_CACHED"
    return source


def test_the_example_of_every_key_is_accepted_and_valid_by_the_schema():
    schema = jsonschema.Draft202012Validator(json_schema())

    def check(path: str) -> None:
        source = example_of(path, KEYS[path])
        schema.validate(source)
        spec = JobSpec.parse(source, admin=True)
        assert bool(spec.run) != spec.serves_parent

    check_each(ACCEPTED, check)


def test_keys_of_administrators_are_refused_to_everyone_else_with_the_reason():
    def check(path: str) -> None:
        found = errors_of(example_of(path, KEYS[path]))
        assert {error.code for error in found} == {"admin_only"}
        assert KEYS[path].why in found[0].message

    check_each(ADMINS, check)


@pytest.mark.feature("S2.10")
def test_refused_keys_are_refused_to_administrators_too_with_the_reason():
    def check(path: str) -> None:
        key = KEYS[path]
        found = errors_of(example_of(path, key), admin=True)
        error = next(e for e in found if e.path.endswith(key.name))
        assert error.code == REFUSAL_CODES[key.tier].value
        assert key.why in error.message

    check_each(REFUSED, check)


def test_every_key_is_described():
    def check(path: str) -> None:
        key = KEYS[path]
        assert key.about.endswith(".")
        assert key.is_refused or key.example is not None
        assert key.tier is Tier.EVERYONE or key.why.endswith(".")

    check_each(sorted(KEYS), check)


def test_the_schema_is_a_valid_schema_that_refuses_what_is_unknown():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not validator.is_valid({"run": "x", "service": {"A": "b"}})
    assert not validator.is_valid({"setup": "x"})
    assert validator.is_valid({"run": "x", "portal": None})
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("path", "text"),
    [(spec_documents.PAGE, page_text()), (spec_documents.SCHEMA, schema_text())],
    ids=["spec.md", "job-spec.schema.json"],
)
def test_the_reference_is_current(path, text):
    assert path.read_text(encoding="utf-8") == text, "run python -m tests.spec_documents"
