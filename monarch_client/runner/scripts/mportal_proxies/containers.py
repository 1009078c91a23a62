"""Containers of the module `collections` as data: what each has beside its items."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Mapping

# By type: the tag of its tree.
KINDS: Mapping[type, str] = {
    OrderedDict: "ordered",
    defaultdict: "defaults",
    Counter: "counter",
    deque: "deque",
}
# What makes a missing value, of those that are no code of a user.
_FACTORIES: Mapping[str, Any] = {
    each.__name__: each for each in (bool, bytes, dict, float, int, list, set, str, tuple)
}


def describe(value: Any) -> tuple[str, Any]:
    """Return the tag of a container, and what it has beside its items, as data.

    ValueError: that is no data.
    """
    if isinstance(value, defaultdict):
        factory = value.default_factory
        name = getattr(factory, "__name__", None)
        if factory is not None and _FACTORIES.get(str(name)) is not factory:
            raise ValueError(f"its default_factory is {factory!r}")
        return "defaults", name
    if isinstance(value, deque):
        return "deque", value.maxlen
    # The state_dict of a torch module has the versions of its parts as an attribute.
    return KINDS[type(value)], dict(vars(value)) if isinstance(value, OrderedDict) else None


def build(tag: str, items: list[Any], extra: Any) -> Any:
    """Return a container. ValueError, TypeError, KeyError: these are not its parts."""
    if tag == "deque":
        return deque(items, extra)
    if tag == "defaults":
        return defaultdict(None if extra is None else _FACTORIES[extra], items)
    if tag == "counter":
        return Counter(dict(items))
    made: OrderedDict[Any, Any] = OrderedDict(items)
    vars(made).update(extra)
    return made
