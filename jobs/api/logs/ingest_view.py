"""The endpoint of runners' frames. They sign in with their attempt's token, never with a user's.

The body is bounded before and after decompression; `ingest_frames` does the rest.
"""

from __future__ import annotations

import time
import zlib

import msgspec
from django.http import HttpRequest, HttpResponse, JsonResponse
from msgspec import UNSET

from jobs.actions.ingest.answer_runner import NO_ORDERS, Orders, answer_runner
from jobs.actions.ingest.ingest_frames import take_in
from jobs.api.base.attempt_token import token_of_attempt
from jobs.api.base.body_limit import CAME_AT
from jobs.api.base.errors import problem, problem_of
from jobs.api.base.methods import only
from jobs.api.base.strict import require_known_parameters
from jobs.errors import InvalidFrameError
from jobs.ground.disk_space import require_room_for_frames
from jobs.logs.senders import sender_of
from monarch_client.runner.vocabulary.limits import MAX_BODY_BYTES
from monarch_client.wire.attempts import FramesAnswer, StackOrder, StopOrder

_GZIP = 16 + zlib.MAX_WBITS
_TOO_LARGE = f"Post at most {MAX_BODY_BYTES} bytes of frames at once."


class BodyTooLargeError(Exception):
    """More than the bound, as sent or once unpacked."""


@only("POST")
def ingest_view(request: HttpRequest, attempt_id: int) -> HttpResponse:
    """Answer `POST /attempts/{id}/frames`: 200 `{"acked": {rank: seq}}`, or a problem.

    `"stop": {"grace_s": seconds}` beside it: the attempt is to end.
    `"stacks": [{"id", "rank", "pid"}]`: the stack dumps that were requested.
    """
    try:
        token = token_of_attempt(request)
        require_known_parameters(request.GET, ())
        frames = _frames_in(request)
        if frames:  # a sign of life needs no room
            require_room_for_frames()
        sender = sender_of(attempt_id, token)
        acked = take_in(sender, frames, sent_at=_sent_at(request), took_s=_took_s(request))
        # Most answers have nothing else: a request that is made now is delivered with the next one.
        orders = answer_runner(attempt_id) if sender.is_waited_for else NO_ORDERS
        answer = _answer(acked, orders)
    except BodyTooLargeError:
        return problem(413, "body_too_large", _TOO_LARGE)
    except Exception as error:  # noqa: BLE001 - every answer here is a problem document
        return problem_of(error)
    return JsonResponse(msgspec.to_builtins(answer))


def _answer(acked: dict[str, int], orders: Orders) -> FramesAnswer:
    grace_s = orders.stop_grace_s
    return FramesAnswer(
        acked=acked,
        stop=UNSET if grace_s is None else StopOrder(grace_s=grace_s),
        stacks=[StackOrder(**ask._asdict()) for ask in orders.stacks] or UNSET,
        gateway=orders.gateway or UNSET,
    )


def _sent_at(request: HttpRequest) -> float | None:
    """Return the time of the runner's clock; None if the request does not carry it."""
    try:
        return float(request.headers.get("X-Sent-At", ""))
    except ValueError:
        return None


def _took_s(request: HttpRequest) -> float:
    """Return the seconds since the request's head came. Its body may have taken minutes since."""
    now = time.monotonic()
    came_at: float = getattr(request, "scope", {}).get(CAME_AT, now)
    return now - came_at


def _frames_in(request: HttpRequest) -> bytes:
    body = request.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise BodyTooLargeError
    if request.headers.get("Content-Encoding", "").lower() == "gzip":
        return _unzipped(body)
    return body


def _unzipped(body: bytes) -> bytes:
    """Decompress `body`; a zip bomb is given up at the bound, not after it."""
    unzip = zlib.decompressobj(_GZIP)
    try:
        frames = unzip.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error:
        raise InvalidFrameError("The body is not gzip, as Content-Encoding says.") from None
    if len(frames) > MAX_BODY_BYTES:
        raise BodyTooLargeError
    if not unzip.eof:
        raise InvalidFrameError("The gzip body ends too early.")
    return frames
