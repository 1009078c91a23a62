"""The lineage of objects: the calls that made them, which can compute lost ones again. Pure.

The call of a task is kept while its result is in the store of a host, and while the result of
another call that is kept was made from it. Values that the driver has itself are kept with the
calls that they were arguments of. All of it is limited: the oldest calls are forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monarch_client.context.values import Payload
from monarch_client.context.wire import Call

MOST_BYTES = 64 * 1024 * 1024
# Of a call, beside its code and arguments.
_CALL_BYTES = 1000


@dataclass(slots=True, eq=False)
class Recipe:
    """The call that made an object, how often it was lost, and arguments that the driver has."""

    call: Call
    object_id: bytes
    losses: int
    values: Mapping[bytes, Payload]
    is_there: bool = True

    @property
    def references(self) -> set[bytes]:
        """The objects that the call refers to."""
        return {*self.call.needs, *self.call.holds}

    @property
    def size(self) -> int:
        """The bytes that it takes in the driver."""
        values = sum(len(each.data) for each in self.values.values())
        return _CALL_BYTES + len(self.call.code) + len(self.call.args.data) + values


class Lineage:
    """The recipes of objects, by their references."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._recipes: dict[bytes, Recipe] = {}
        # By reference, also of objects without a recipe: how many recipes need it.
        self._users: dict[bytes, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._recipes)

    def find(self, ref: bytes) -> Recipe | None:
        """Return the recipe of an object, or None."""
        return self._recipes.get(ref)

    def add(self, recipe: Recipe) -> None:
        """Keep the recipe of an object that was just made, instead of its former one."""
        ref = recipe.call.id
        for each in recipe.references:
            self._users[each] = self._users.get(each, 0) + 1
        if former := self._recipes.get(ref):
            self._remove(ref, former)
        self._recipes[ref] = recipe
        self._bytes += recipe.size
        while self._bytes > self._most_bytes:
            oldest = next(iter(self._recipes))
            self._remove(oldest, self._recipes[oldest])

    def drop(self, ref: bytes, object_id: bytes) -> None:
        """Note that an object exists no longer. A later one of the same reference may."""
        recipe = self._recipes.get(ref)
        if recipe is not None and recipe.object_id == object_id:
            recipe.is_there = False
            if ref not in self._users:
                self._remove(ref, recipe)

    def _remove(self, ref: bytes, recipe: Recipe) -> None:
        """Forget a recipe with those that it alone needs: in a loop, for chains of any length."""
        removed = [(ref, recipe)]
        while removed:
            ref, recipe = removed.pop()
            if self._recipes.get(ref) is not recipe:
                continue
            del self._recipes[ref]
            self._bytes -= recipe.size
            for each in recipe.references:
                self._users[each] -= 1
                if self._users[each]:
                    continue
                del self._users[each]
                needed = self._recipes.get(each)
                if needed is not None and not needed.is_there:
                    removed.append((each, needed))
