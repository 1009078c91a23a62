"""Short ways to write specifications and to see what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from monarch_client.spec import InvalidSpecErrors, JobSpec, SpecError

UPLOAD = "upload:" + "0123456789abcdef" * 4


def spec(**keys: Any) -> dict[str, Any]:
    """Return the smallest specification, with `keys`."""
    return {"run": "python train.py", **keys}


def portal(**keys: Any) -> dict[str, Any]:
    """Return the smallest specification, with a portal block of `keys`."""
    return spec(portal=keys)


def errors_of(source: Any, **options: Any) -> list[SpecError]:
    """List the errors of `source`; there must be one."""
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(source, **options)
    return caught.value.errors


def only_error(source: Any, **options: Any) -> SpecError:
    """Return the only error of `source`."""
    errors = errors_of(source, **options)
    assert len(errors) == 1, errors
    return errors[0]


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return the smallest specification with `value` at the dotted `path` of the reference."""
    for part in reversed(path.split(".")):
        name = "/mnt/data" if part == "<name>" else part.removesuffix("[]")
        value = {name: [value] if part.endswith("[]") else value}
    return {"run": "python train.py", **value}
