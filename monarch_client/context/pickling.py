"""The pickler of functions and classes: cloudpickle, without what Monarch adds to it."""

from __future__ import annotations

import io
from types import FunctionType
from typing import Any

import cloudpickle

PROTOCOL = 5


class FunctionPickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # cloudpickle has no types
    """A pickler for processes without Monarch.

    Once a driver has imported Monarch, cloudpickle gives each function a loader of Monarch's, for
    its debugger. An executor would import Monarch with it: seconds, and 130 MB.
    """

    def _dynamic_function_reduce(self, func: FunctionType) -> Any:
        reduced = super()._dynamic_function_reduce(func)
        variables = reduced[2][1]["__globals__"]
        if type(variables.get("__loader__")).__module__.startswith("monarch."):
            del variables["__loader__"]
        return reduced


def dumps(value: object) -> bytes:
    """Pickle a value with the functions and classes in it."""
    with io.BytesIO() as file:
        FunctionPickler(file, protocol=PROTOCOL).dump(value)
        return file.getvalue()
