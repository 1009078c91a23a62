"""Objects that live on the cluster, and that messages name by their ids."""

from __future__ import annotations


class Reference:
    """An object of a session, by its id there."""

    def __init__(self, owner: object, number: int) -> None:
        self._owner = owner
        self._number = number

    def _number_in(self, session: object) -> int | None:
        """Return the id, or None in another session than the object's own."""
        return self._number if self._owner is session else None
