"""The keys of `portal` that make an array: one job for each combination of values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from monarch_client.spec.envs import EnvValue, made_variable_complaint
from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.shapes import KeyName, Listing, Mapping, Whole
from monarch_client.spec.tables import Key

MOST_MEMBERS = 1_000
MOST_NAMES = 20

ARRAY_KEY = Key(
    "array",
    "Makes an array: one job for each combination of the values. A job finds its values in "
    f"variables named like the keys in capitals. At most {MOST_MEMBERS:,} jobs.",
    Mapping(
        "a mapping of names to lists of values",
        KeyName("a name of letters, digits and _", r"[A-Za-z_][A-Za-z0-9_]{0,99}"),
        Listing(EnvValue(), most=MOST_MEMBERS, least=1),
        most=MOST_NAMES,
    ),
    {"lr": ["1e-4", "3e-4"], "seed": [1, 2]},
)
MAX_PARALLEL_KEY = Key(
    "max_parallel",
    "The most jobs of the array that use machines at once; by default unlimited.",
    Whole(1, MOST_MEMBERS),
    2,
)


def variable_of(name: str) -> str:
    """Return the environment variable in which a job finds its value of `name`."""
    return name.upper()


def count_of(array: dict[str, list[str]]) -> int:
    """Return the number of jobs of an array; 1 if there is no array."""
    return math.prod(map(len, array.values()))


def combinations(array: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    """Yield the values of each job, the last name's values changing fastest."""
    for values in itertools.product(*array.values()):
        yield dict(zip(array, values, strict=True))


def array_is_sound(values: dict[str, Any], path: str, findings: Findings) -> None:
    """Refuse an array with too many jobs, or with two names of one variable."""
    array = values.get("array")
    if values.get("max_parallel") is not None and not array:
        where = join(path, "max_parallel")
        findings.add(where, SpecCode.CONFLICT, f"{where} needs portal.array.")
    if not isinstance(array, dict) or not all(isinstance(each, list) for each in array.values()):
        return
    where = join(path, "array")
    count = count_of(array)
    if count > MOST_MEMBERS:
        message = f"{where} makes {count:,} jobs; at most {MOST_MEMBERS:,} are allowed."
        findings.add(where, SpecCode.TOO_LARGE, message)
    names: dict[str, str] = {}
    for name in array:
        variable = variable_of(name)
        if complaint := made_variable_complaint(variable):
            findings.add(join(where, name), SpecCode.BAD_VALUE, f"{join(where, name)}: {complaint}")
        if variable in names:
            message = f"{join(where, name)} and {names[variable]} would both be {variable}."
            findings.add(join(where, name), SpecCode.CONFLICT, message)
        names[variable] = name


def array_leaves_envs_alone(values: dict[str, Any], _: str, findings: Findings) -> None:
    """Refuse an array that sets a variable which envs or secrets set already."""
    portal, envs = values.get("portal"), values.get("envs")
    array = portal.get("array") if isinstance(portal, dict) else None
    if not isinstance(array, dict):
        return
    given = {*(envs if isinstance(envs, dict) else ()), *(values.get("secrets") or {})}
    for name in array:
        if variable_of(name) in given:
            where = f"portal.array.{name}"
            message = f"{where} sets {variable_of(name)}, which envs or secrets set already."
            findings.add(where, SpecCode.CONFLICT, message)
