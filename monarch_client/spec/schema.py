"""The specification as JSON Schema, from the same tables that the parser reads by."""

from __future__ import annotations

from typing import Any

from monarch_client.spec.task_keys import TASK

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Only a job whose workers wait for laptops, or serve its parent's driver, may leave `run` out.
_RUN_OR_NO_DRIVER = [
    {"required": ["run"]},
    *(
        {"required": ["portal"], "properties": {"portal": {"required": [key]}}}
        for key in ("gateway", "driver")
    ),
]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of a job specification, for editors and forms.

    Whatever the parser accepts is valid by it. It cannot say everything: what looks at several
    keys together, and the reasons, only the parser knows.
    """
    return {
        "$schema": DIALECT,
        "title": "Job specification of the Monarch portal",
        "description": "SkyPilot's task, within tiers, and the portal's own block. Keys marked "
        "x-tier: admin are for administrators of the installation.",
        **TASK.schema(),
        "anyOf": _RUN_OR_NO_DRIVER,
    }
