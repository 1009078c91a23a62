"""Every field of SkyPilot's task is accepted, or refused with the reason."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import cache

import pytest

from monarch_client.spec import InvalidSpecErrors, JobSpec
from tests.each_case import check_each
from tests.spec_documents import all_keys
from tests.unit.spec.skypilot_fields import FIELDS
from tests.unit.spec.skypilot_oracle import (
    ACCEPTED,
    PROBES,
    REFUSED,
    answers_of_skypilot,
    document,
    reason_in,
)

pytestmark = pytest.mark.feature("S2.10")

# What SkyPilot says about itself, by the paths that our reference uses. In a process of its own:
# importing SkyPilot leaves threads and log handlers behind.
_LIST_FIELDS = """
import json
from sky.utils import schemas

def below(schema, path):
    for name, value in schema.get("properties", {}).items():
        here = path + name
        yield here
        yield from below(value, here + ".")
        for option in value.get("anyOf", []):
            yield from below(option, here + ".")
        yield from below(value.get("items", {}), here + "[].")

fields = [*below(schemas.get_task_schema(), ""),
          *below(schemas.get_resources_schema(), "resources."),
          *below(schemas.get_storage_schema(), "file_mounts.<name>.")]
print(json.dumps(sorted(set(fields))))
"""
KEYS = dict(all_keys())
# Their parents are refused, or passed on unread, as a whole; or they repeat `resources`.
_WHOLE = {"managed_secrets", "service", "pool", "volume_mounts", "resources.autostop",
          "resources.job_recovery", "resources._docker_login_config", "resources.any_of",
          "resources.ordered", "config.kubernetes.dws", "config.kubernetes.kueue",
          "config.kubernetes.quota", "config.slurm.quota",
          "config.gcp.managed_instance_group", "config.kubernetes.custom_metadata",
          "config.ssh.custom_metadata", "config.kubernetes.pod_config"}  # fmt: skip


def whole_of(field: str) -> str:
    """Return the parent that represents the field, or the field itself."""
    return next((w for w in _WHOLE if field.startswith((f"{w}.", f"{w}[]"))), field)


@cache
def fields_of_installed_skypilot() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LIST_FIELDS],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_every_field_is_accepted_or_refused_with_a_reason():
    def check(field: str) -> None:
        key = KEYS[whole_of(field)]
        assert key.why if key.is_refused else key.about

    check_each(FIELDS, check)


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("sky"), reason="SkyPilot is not installed")
def test_the_list_of_fields_is_that_of_the_skypilot_installed():
    assert list(FIELDS) == sorted({whole_of(field) for field in fields_of_installed_skypilot()})


def _refusal(content: dict) -> str:
    """Return why the portal refuses a document of an administrator, or ""."""
    try:
        JobSpec.parse(content, admin=True)
    except InvalidSpecErrors as error:
        return error.errors[0].message
    return ""


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("sky"), reason="SkyPilot is not installed")
def test_values_are_accepted_as_by_skypilot_or_refused_for_a_stated_reason():
    fields = [each for each in (*FIELDS, "resources.gpus") if not KEYS[each].is_refused]
    fields = [each for each in fields if not each.rpartition(".")[2].startswith("_")]
    tried = [(field, value) for field in fields for value in (KEYS[field].example, *PROBES)]
    answers = answers_of_skypilot([document(*each) for each in tried])
    used: set[tuple[str, str]] = set()

    def check(field: str, value: object, theirs: str) -> None:
        ours = _refusal(document(field, value))
        if bool(ours) == bool(theirs):
            return
        name, table = ("REFUSED", REFUSED) if ours else ("ACCEPTED", ACCEPTED)
        assert reason_in(table, field), f"no reason in {name} for: {ours or theirs}"
        used.add((name, field))

    check_each([(*each, theirs) for each, theirs in zip(tried, answers, strict=True)], check)
    reasons = {("REFUSED", each) for each in REFUSED} | {("ACCEPTED", each) for each in ACCEPTED}
    assert not {each for each in reasons - used if each[1] != "config"}, "reasons nothing needs"
