"""Functions and classes as bytes. What cannot have changed since is pickled once."""

from __future__ import annotations

import builtins
import dis
import sys
import types
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from cloudpickle import list_registry_pickle_by_value

from monarch_client.context.ids import ID_BYTES
from monarch_client.context.values import pickled

_READS_OF_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


class Code(NamedTuple):
    """A pickled function, its digest, and the references in it."""

    data: bytes
    digest: bytes
    refs: tuple[bytes, ...]


_constant: WeakKeyDictionary[types.FunctionType, Code] = WeakKeyDictionary()


def code_of(function: Callable[..., Any]) -> Code:
    """Pickle a function or a class."""
    if not isinstance(function, types.FunctionType):
        return _pickled(function)
    found = _constant.get(function)
    if found is None:
        found = _pickled(function)
        if is_constant(function):
            _constant[function] = found
    return found


def is_constant(function: types.FunctionType) -> bool:
    """Whether a function is always pickled to the same bytes.

    It is if it is pickled by its name, or if it has no state: no closure, default or attribute,
    and of the globals that it uses only modules.
    """
    if list_registry_pickle_by_value():
        return False
    module = sys.modules.get(function.__module__)
    if function.__module__ != "__main__" and module is not None:
        named: object = module
        for name in function.__qualname__.split("."):
            named = getattr(named, name, None)
        if named is function:
            return True
    has_state = (
        function.__closure__,
        function.__defaults__,
        function.__kwdefaults__,
        function.__dict__,
    )
    names = set(_names_in(function.__code__))
    return (
        not any(has_state)
        and all(
            isinstance(function.__globals__.get(name, builtins), types.ModuleType) for name in names
        )
        and not _undefined(function, names)
    )


def _undefined(function: types.FunctionType, names: set[str]) -> bool:
    """Whether a function reads a global that does not exist yet.

    `names` has attributes as well, so that most functions need a look at their instructions.
    """
    unknown = {
        name for name in names if name not in function.__globals__ and not hasattr(builtins, name)
    }
    return bool(unknown) and not unknown.isdisjoint(_globals_read_by(function.__code__))


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _globals_read_by(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READS_OF_GLOBALS:
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_read_by(constant)


def _pickled(function: Callable[..., Any]) -> Code:
    data, refs = pickled(function)
    return Code(data, blake2b(data, digest_size=ID_BYTES).digest(), refs)
