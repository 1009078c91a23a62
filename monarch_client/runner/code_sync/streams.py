"""Node streams as the services of code use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from typing import Any, Awaitable, Callable, Protocol

    class Stream(Protocol):
        """A stream that another node, or a laptop, has opened."""

        request: dict[str, Any]
        reader: asyncio.StreamReader
        writer: asyncio.StreamWriter

        async def accept(self, **fields: Any) -> None:
            """Answer that the stream is open."""

    class OpenStream(Protocol):
        """A stream that this node has opened, with the fields of the answer."""

        @property
        def answer(self) -> dict[str, Any]:
            """The fields of the answer."""

        @property
        def reader(self) -> asyncio.StreamReader:
            """The bytes from the other node."""

        @property
        def writer(self) -> asyncio.StreamWriter:
            """The bytes to the other node."""

    class Dial(Protocol):
        """An opener of streams to services of ranks. OSError: it is not open."""

        def __call__(self, rank: int, service: str, **fields: Any) -> Awaitable[OpenStream]:
            """Open the stream."""

    OnReady = Callable[[int], None]
