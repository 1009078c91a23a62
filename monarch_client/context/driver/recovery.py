"""The recovery of a lost host's objects: they are computed again, or have an error."""

from __future__ import annotations

from monarch_client.context.driver.actors import Actors
from monarch_client.context.driver.lineage import Lineage, Recipe
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.stored_objects import StoredObjects
from monarch_client.context.driver.tasks import Tasks
from monarch_client.context.errors import ObjectLostError
from monarch_client.context.values import error_payload


class Recovery:
    """The driver's handling of lost objects."""

    def __init__(
        self, objects: ObjectTable, stored: StoredObjects, tasks: Tasks, actors: Actors
    ) -> None:
        self._objects = objects
        self._stored = stored
        self._tasks = tasks
        self._actors = actors

    @property
    def _lineage(self) -> Lineage:
        return self._stored.lineage

    def recover(self, host: str) -> None:
        """Run the tasks again whose results were on a lost host; the others have an error.

        Calls that have these as arguments, and were not sent yet, wait for them again.
        """
        lost = self._stored.lose_host(host)
        reasons = {
            place.ref: f"The value of {place.producer} was lost with its host {host}"
            for place in lost
        }
        self._objects.lose(reasons)
        for place in lost:
            if place.ref in self._objects:
                self._compute(place.ref, reasons)
        for place in lost:
            # What only other lost objects referred to, unless these are computed from it.
            if place.ref not in self._objects and (recipe := self._lineage.find(place.ref)):
                self._lineage.drop(place.ref, recipe.object_id)
        if reasons:
            self._tasks.await_again()
            self._actors.await_again()

    def _compute(self, lost: bytes, reasons: dict[bytes, str]) -> None:
        """Compute a lost object, and first those that it is made of and that exist no longer."""
        missing, recipes = [lost], dict[bytes, Recipe]()
        added: list[bytes] = []
        while missing:
            ref = missing.pop()
            if ref in recipes or self._objects.is_ready(ref) or self._tasks.has(ref):
                continue
            recipe = self._lineage.find(ref)
            if recipe is None or recipe.losses >= recipe.call.max_retries:
                self._fail(ref, reasons[ref], recipe)
                continue
            recipes[ref] = recipe
            for needed in self._add_arguments(recipe):
                added.append(needed)
                reasons[needed] = f"{reasons[lost]}, and an argument of it has been deleted"
            # Others that are not ready have a call that has not ended.
            missing += [each for each in recipe.references if each in reasons]
        for recipe in recipes.values():
            # If it is something else now, such as a small value, nothing is kept.
            self._lineage.drop(recipe.call.id, recipe.object_id)
            self._tasks.submit_again(recipe.call, recipe.losses + 1)
        for needed in added:
            self._objects.drop(needed)

    def _add_arguments(self, recipe: Recipe) -> list[bytes]:
        """Add the objects that a call refers to and that exist no longer; return them."""
        added = [each for each in recipe.references if each not in self._objects]
        for each in added:
            self._objects.add(each)
            if value := recipe.values.get(each):
                self._objects.settle(each, value)
        return added

    def _fail(self, ref: bytes, reason: str, recipe: Recipe | None) -> None:
        if recipe is not None:
            self._lineage.drop(ref, recipe.object_id)
            reason = f"{reason}, after {recipe.losses} retries"
        self._objects.settle(ref, error_payload(ObjectLostError(f"{reason}.")))
