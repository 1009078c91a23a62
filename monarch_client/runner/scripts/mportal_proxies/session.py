"""One client's session: its messages become calls on meshes, the results become messages."""

from __future__ import annotations

import asyncio
import pickle
import sys
import traceback
from typing import TYPE_CHECKING

from . import failures
from .channel import Channel
from .classes import import_class
from .codec import Codec, outline
from .in_flight import InFlight
from .meshes import Meshes, results_of

if TYPE_CHECKING:
    from typing import Any, Awaitable, Callable, Iterator, Mapping

    from .spill import Spill

    Message = Mapping[str, Any]

EXPIRED = "expired"


class Session:
    """The session of the driver: the meshes, the calls that run, and the channel to the client."""

    def __init__(
        self,
        meshes: Meshes,
        options: Message,
        on_end: Callable[[], None],
        spill: Spill | None = None,
    ) -> None:
        self._meshes = meshes
        self._on_end = on_end
        wants = bool(options.get("pickle")), bool(options.get("pickle_results"))
        self._codec = Codec(
            import_class,
            resolve=meshes.resolve,
            # The user's own code on both sides, and only at the user's explicit request.
            unpickle=pickle.loads if wants[0] else None,
            pickle=_dumps if wants[1] else None,
            may_import_torch=True,
        )
        self._queue: asyncio.Queue[bytearray] = asyncio.Queue()
        self._calls: dict[int, asyncio.Task[int]] = {}
        self._in_flight = InFlight()
        self.channel = Channel(self._queue.put_nowait, spill=spill)

    async def run(self) -> None:
        """Carry out the client's messages, in their order."""
        while True:
            encoded = await self._queue.get()
            channel = self.channel
            # A client that reads slowly: its next calls wait, its results do not expire. If its
            # calls are too many as well, its acknowledgements are behind them.
            while channel.is_connected and channel.outbox.is_full and not channel.is_held:
                await channel.wait_for_progress()
            await self._in_flight.wait_for_room()
            await self._handle(encoded)
            channel.note_handled(encoded)

    def report_fault(self, text: str) -> None:
        """Send the client a fault that no call of its own reports."""
        self._send({"op": "fault", "text": text})

    async def _handle(self, encoded: bytearray) -> None:
        try:
            message = self._codec.decode(encoded)
        except Exception as error:  # noqa: BLE001 - of whatever the client sent
            self._refuse(outline(encoded), error)
            return
        try:
            await self._apply(message)
        except Exception as error:  # noqa: BLE001 - the client gets it
            self._refuse(message, error)

    async def _apply(self, message: Message) -> None:
        op, meshes = message["op"], self._meshes
        if op in ("derive", "spawn_procs", "drop"):
            getattr(meshes, op)(message)
        elif op == "spawn":
            endpoints = await meshes.spawn(message)
            self._send({"op": "result", "id": message["id"], "result": endpoints})
        elif op in ("call", "stop", "initialized"):
            sent = getattr(meshes, op)(message)
            if "id" in message:  # a broadcast has no answer
                self._answer_later(message, results_of(message, sent))
        elif op == "cancel" and message["id"] in self._calls:
            self._calls[message["id"]].cancel()
        elif op == "bye":
            self._on_end()

    def _answer_later(self, message: Message, results: Iterator[Awaitable[Any]]) -> None:
        number, endpoint = message["id"], str(message.get("endpoint"))
        task = asyncio.ensure_future(self._answer(message, results))
        self._calls[number] = task
        self._in_flight.begin(endpoint)

        def end(task: asyncio.Task[int]) -> None:
            del self._calls[number]
            self._in_flight.end(endpoint, 0 if task.cancelled() else task.result())

        task.add_done_callback(end)

    async def _answer(self, message: Message, results: Iterator[Awaitable[Any]]) -> int:
        """Send each result of a call, and the error that ends it; return how much was sent."""
        sent = 0
        for position in range(message.get("count", 1)):
            try:
                result = await next(results)
                answer = {"op": "result", "id": message["id"], "result": result}
                sent += self._send(answer, position)
            except Exception as error:  # noqa: BLE001, PERF203 - the client gets it
                self._fail(message, error, position)
        return sent

    def _fail(self, message: Message, error: Exception, position: int = 0) -> None:
        """Send the client the error of its message; of one without an answer, as a fault."""
        number = message.get("id") if isinstance(message, dict) else None
        if number is None:
            self.report_fault("".join(traceback.format_exception_only(type(error), error)))
            return
        rank, host = self._location(message)
        failure = failures.describe(error, self._codec, rank=rank, host=host)
        self._send({"op": "error", "id": number, "error": failure}, position)

    def _location(self, message: Message) -> tuple[int | None, str | None]:
        """Return the rank and host of the only member of the message's mesh; None for several."""
        try:
            return self._meshes.entry(message["of"]).location
        except Exception:  # noqa: BLE001 - it must not hide the error that is being reported
            return None, None

    def _refuse(self, message: Message, error: Exception) -> None:
        """Send the client the error of a message in place of each of its answers."""
        count = message.get("count", 1) if isinstance(message, dict) else 1
        for position in range(count if isinstance(count, int) else 1):
            self._fail(message, error, position)

    def _send(self, message: dict[str, Any], position: int = 0) -> int:
        """Send a message, and return its size."""
        number = message.get("id")
        message["position"] = position
        substitute = None
        if number is not None:
            short = {"op": "error", "id": number, "position": position, "error": EXPIRED}
            substitute = self._codec.encode(short)
        encoded = self._codec.encode(message)
        self.channel.send(encoded, substitute)
        return len(encoded)


def _dumps(value: Any) -> bytes:
    # cloudpickle comes with torchmonarch, and takes functions and classes of a program as well.
    cloudpickle = sys.modules.get("cloudpickle", pickle)
    data: bytes = cloudpickle.dumps(value)
    return data
