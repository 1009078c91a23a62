"""The actor of `proxy_calls`, in the code of its jobs."""

from __future__ import annotations

from monarch.actor import Actor, endpoint


class Echo(Actor):  # type: ignore[misc]  # monarch has no types
    """An actor that answers at once."""

    @endpoint  # type: ignore[untyped-decorator]
    def length(self, data: bytes) -> int:
        """Return the size of an argument."""
        return len(data)
