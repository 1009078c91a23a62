"""Classes by name, and values of them made without running any code of theirs."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Optional

    FindClass = Callable[[str], Optional[type]]


@dataclasses.dataclass(frozen=True)
class Record:
    """A dataclass or named tuple whose class is not imported here: its name and fields."""

    type_name: str
    fields: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """Return a field."""
        if name in ("fields", "type_name") or name not in self.fields:
            raise AttributeError(f"{self.type_name} has no field {name!r}")
        return self.fields[name]


def name_of(cls: type) -> str:
    """Return the name of a class for the wire: `module:Qualified.Name`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def find_imported(name: str) -> type | None:
    """Return the class if its module is imported already; a message never imports one."""
    module_name, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module_name)
    for part in qualified.split("."):
        # Not getattr(): a module or metaclass may run code for a name that it does not have.
        found = vars(found).get(part) if found is not None and hasattr(found, "__dict__") else None
    return found if isinstance(found, type) and name_of(found) == name else None


def import_class(name: str) -> type:
    """Return the class `module:Name` or `module.Name`, and import its module if necessary.

    For code of the user's own on the cluster. ImportError, ValueError: there is no such class.
    """
    module_name, _, qualified = name.partition(":") if ":" in name else name.rpartition(".")
    if not module_name or not qualified:
        raise ValueError(f"{name!r} names no class: write it as module:Class")
    found: Any = importlib.import_module(module_name)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise ValueError(f"module {module_name} has no class {qualified}")
    return found


def build_dataclass(cls: type, fields: Mapping[str, Any]) -> Any:
    """Return an instance with these fields; ValueError: they are not those of the class."""
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"{name_of(cls)} is no dataclass")
    declared = {field.name for field in dataclasses.fields(cls)}
    if declared != set(fields):
        raise ValueError(f"the fields of {name_of(cls)} differ on both sides")
    instance = _new(cls)
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
    return instance


def build_named_tuple(cls: type, values: list[Any]) -> Any:
    """Return the named tuple; ValueError: the class is none, or has other fields."""
    if not issubclass(cls, tuple) or len(getattr(cls, "_fields", ())) != len(values):
        raise ValueError(f"{name_of(cls)} is no named tuple with {len(values)} fields")
    return tuple.__new__(cls, values)


def build_member(cls: type, name: str) -> Any:
    """Return a member of an enumeration; ValueError: there is none of that name."""
    if not issubclass(cls, enum.Enum) or name not in cls.__members__:
        raise ValueError(f"{name_of(cls)} has no member {name!r}")
    return cls.__members__[name]


def build_flags(cls: type, value: int) -> Any:
    """Return flags by their value, also several or none; ValueError: the class has no such."""
    if not issubclass(cls, enum.Flag) or vars(cls).get("_member_type_") not in (object, int):
        raise ValueError(f"{name_of(cls)} has no flags that can be made from data")
    found = cls._value2member_map_.get(value)
    if found is not None:
        return found
    # The way of the standard library: a class of the user may have one of its own.
    standard = (vars(each) for each in cls.__mro__ if each.__module__ == "enum")
    missing = next(each["_missing_"] for each in standard if "_missing_" in each)
    return missing.__func__(cls, value)


def build_exception(cls: type, arguments: tuple[Any, ...], state: Mapping[str, Any]) -> Exception:
    """Return an exception with these arguments and attributes; ValueError: no Exception."""
    if not issubclass(cls, Exception):
        raise ValueError(f"{name_of(cls)} is no Exception")
    base = next(each for each in cls.__mro__ if each.__module__ == "builtins")
    try:
        instance: Exception = base.__new__(cls, *arguments)
        # The builtin's: a constructor of the user's class may do anything, or want other arguments.
        base.__init__(instance, *arguments)  # type: ignore[misc]
    except TypeError as error:
        raise ValueError(f"{name_of(cls)} cannot be made of {arguments!r}") from error
    vars(instance).update(state)
    return instance


def _new(cls: type) -> Any:
    try:
        return object.__new__(cls)
    except TypeError as error:
        raise ValueError(f"{name_of(cls)} cannot be made from data") from error
