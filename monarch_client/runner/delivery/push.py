"""The push carrier: posts the journal to the portal, in order, until it is acknowledged."""

from __future__ import annotations

import gzip
import http.client
import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from monarch_client.runner.base.retry import Retry
from monarch_client.runner.delivery.portal_address import open_connection, portal_url
from monarch_client.runner.journal.samples import MOST_PUSHED_BYTES, Samples
from monarch_client.runner.vocabulary.frames import replacement_for, stored_prefix
from monarch_client.runner.vocabulary.limits import MAX_BODY_BYTES
from monarch_client.runner.vocabulary.messages import MALFORMED, object_in
from monarch_client.runner.vocabulary.stack_requests import StackRequest, parse_stack_requests

if TYPE_CHECKING:
    from typing import Callable

    from monarch_client.runner.base.config import AttemptConfig
    from monarch_client.runner.journal.journal import Journal

HEARTBEAT_S = 4.0
BATCH_PAUSE_S = 0.1
_FIRST_BACK_OFF_S = 0.2
_LAST_BACK_OFF_S = 10.0
_REQUEST_TIMEOUT_S = 30.0
_GZIP_FROM_BYTES = 2048
# Batches get smaller while they fail, in case their size is why; not below this.
_LEAST_BATCH_BYTES = 16 * 1024
_OK, _TOO_LARGE = 200, 413
# Only a request with the attempt's own token gets this code. Other refusals may come from a proxy,
# or from another portal that has taken the port meanwhile.
_CLOSED_CODE = "attempt_closed"
_BAD_FRAME_CODE = "invalid_frame"
_PROBLEM = "urn:mportal:problem:"


class Answer(NamedTuple):
    """An answer of the portal."""

    status: int
    body: bytes

    @property
    def acknowledged(self) -> dict[int, int]:
        """The highest stored number of each rank."""
        try:
            acked = object_in(self.body)["acked"]
            return {int(rank): int(seq) for rank, seq in acked.items()}
        except MALFORMED:
            return {}

    @property
    def is_acknowledgement(self) -> bool:
        """Whether the answer acknowledges frames, as the portal's always do."""
        return b'"acked"' in self.body

    @property
    def stop_grace_s(self) -> float | None:
        """The grace time in seconds if the portal requests the attempt to end; else None."""
        try:
            return max(0.0, float(object_in(self.body)["stop"]["grace_s"]))
        except MALFORMED:
            return None

    @property
    def stack_requests(self) -> list[StackRequest]:
        """The requested stack dumps."""
        try:
            return parse_stack_requests(object_in(self.body)["stacks"])
        except MALFORMED:
            return []

    @property
    def wants_gateway(self) -> bool:
        """Whether a laptop wants to attach, so that this node is to connect to the gateway."""
        try:
            return object_in(self.body)["gateway"] is True
        except MALFORMED:
            return False

    @property
    def code(self) -> str:
        """The portal's error code; "" if there is none or another server answered."""
        try:
            kind = str(object_in(self.body)["type"])
        except MALFORMED:
            return ""
        return kind[len(_PROBLEM) :] if kind.startswith(_PROBLEM) else ""

    @property
    def is_about_frames(self) -> bool:
        """Whether the same frames would be refused again."""
        return self.code == _BAD_FRAME_CODE or self.status == _TOO_LARGE


class PortalConnection:
    """A persistent connection. After a failure it looks up the portal's address again."""

    def __init__(self, config: AttemptConfig, timeout_s: float = _REQUEST_TIMEOUT_S) -> None:
        self._config = config
        self._timeout_s = timeout_s
        self._url = config.portal_url
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes) -> Answer:
        """Post NDJSON; OSError when the portal cannot be reached."""
        kept_alive = self._connection is not None
        try:
            return self._post_once(body)
        except (OSError, http.client.HTTPException) as error:
            self.forget()
            if not kept_alive:
                raise OSError(f"the portal does not answer: {error!r}") from error
        # A connection that was idle may have been closed by the other side: not yet a failure.
        return self.post(body)

    def _post_once(self, body: bytes) -> Answer:
        url = urlsplit(self._url)
        if self._connection is None:
            self._connection = open_connection(self._url, self._config.token, self._timeout_s)
        connection = self._connection
        headers = {
            "Authorization": "Bearer " + self._config.token,
            "Content-Type": "application/x-ndjson",
            # The portal measures the error of this clock with it.
            "X-Sent-At": f"{time.time():.3f}",
        }
        if len(body) >= _GZIP_FROM_BYTES:
            headers["Content-Encoding"] = "gzip"
            body = gzip.compress(body, 1)
        path = f"{url.path}/api/v1/attempts/{self._config.attempt_id}/frames"
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.read())

    def close(self) -> None:
        """Close the connection; a later post opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def forget(self) -> None:
        """Close the connection, and look up anew where the portal is."""
        self.close()
        self._url = portal_url(self._config.portal_url, self._config.portal_file)


class Callbacks(NamedTuple):
    """The callbacks of a carrier, on its own thread; each at most once except the last."""

    on_drained: Callable[[], None]  # after `finish`: all is delivered, or no longer wanted
    on_closed: Callable[[], None]  # the portal has closed the attempt
    on_stop: Callable[[float], None]  # the portal wants it to end, within a grace time in seconds
    # The requested stack dumps, repeated until they have arrived, then once an empty list.
    on_stacks: Callable[[list[StackRequest]], None] = lambda _requests: None
    on_gateway: Callable[[], None] = lambda: None  # a laptop wants to attach


class PushCarrier:
    """A carrier whose thread posts until all is acknowledged or the attempt is closed."""

    def __init__(
        self,
        journal: Journal,
        portal: PortalConnection,
        callbacks: Callbacks,
        samples: Samples | None = None,
    ) -> None:
        self._journal = journal
        self._samples = samples or Samples()
        self._portal = portal
        self._callbacks = callbacks
        self._has_stop_request = False
        self._has_gateway_request = False
        self._stack_requests: list[StackRequest] = []
        self._finishing = threading.Event()
        self._max_bytes = MAX_BODY_BYTES
        self._retry = Retry(_FIRST_BACK_OFF_S, _LAST_BACK_OFF_S)
        self._thread = threading.Thread(target=self._push, daemon=True, name="push")
        # Called once everything is acknowledged, including the verdict.
        self.on_acknowledged: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start; the first post is made at once."""
        self._thread.start()

    def finish(self) -> None:
        """Push the rest at once: no further frame will be recorded."""
        self._finishing.set()
        self._journal.finish()

    def _push(self) -> None:
        next_batch_at = 0.0
        while True:
            self._journal.wait(HEARTBEAT_S)
            # Lines that come together travel together; the first ones and the end do not wait.
            self._finishing.wait(max(0.0, next_batch_at - time.monotonic()))
            next_batch_at = time.monotonic() + BATCH_PAUSE_S
            if self._is_over():
                self.on_acknowledged()
                break
            if not self._send_next():
                break
        self._portal.close()
        self._finishing.wait()
        self._callbacks.on_drained()

    def _is_over(self) -> bool:
        return self._finishing.is_set() and self._journal.is_read

    def _send_next(self) -> bool:
        # Send no samples while the refused frame is being identified.
        is_narrowing = self._max_bytes < MAX_BODY_BYTES
        samples = [] if is_narrowing else self._samples.take(MOST_PUSHED_BYTES)
        room = self._max_bytes - sum(len(each) for each in samples)
        return self._send(self._journal.peek(room), samples)

    def _send(self, lines: list[bytes], samples: list[bytes]) -> bool:
        """Post one batch or a heartbeat. False: the portal has closed this attempt.

        Samples of a post that fails are lost: the next ones are newer.
        """
        try:
            answer = self._portal.post(b"".join([*lines, *samples]))
        except OSError:
            self._fail(lines)
            return True
        if answer.code == _CLOSED_CODE:
            self._callbacks.on_closed()
            return False
        if answer.status == _OK:
            self._obey(answer)
            self._settle(lines, answer)
        elif answer.is_about_frames and samples:
            # The portal refuses the samples, or the lines: send the lines again alone.
            if not lines:
                self._samples.close()
        elif answer.is_about_frames and lines:
            self._narrow_down(lines, answer)
        else:
            self._portal.forget()
            self._fail(lines)
        return True

    def _obey(self, answer: Answer) -> None:
        grace_s = answer.stop_grace_s
        if grace_s is not None and not self._has_stop_request:
            self._has_stop_request = True
            self._callbacks.on_stop(grace_s)
        if answer.wants_gateway and not self._has_gateway_request:
            self._has_gateway_request = True
            self._callbacks.on_gateway()
        requests = answer.stack_requests
        if requests != self._stack_requests:
            self._stack_requests = requests
            self._callbacks.on_stacks(requests)

    def _settle(self, lines: list[bytes], answer: Answer) -> None:
        stored = stored_prefix(lines, answer.acknowledged)
        self._journal.acknowledge(stored)
        if len(stored) < len(lines):
            self._back_off()
            return
        self._retry.succeeded()
        self._max_bytes = MAX_BODY_BYTES

    def _narrow_down(self, lines: list[bytes], answer: Answer) -> None:
        """Halve a refused batch until one frame is left, then send its replacement."""
        if len(lines) > 1:
            self._max_bytes = sum(len(line) for line in lines) // 2
            return
        why = "status {}: {}".format(answer.status, answer.body[:500].decode("utf-8", "replace"))
        try:
            again = self._portal.post(replacement_for(lines[0], why))
        except OSError:
            return
        if again.status == _OK or again.is_about_frames:
            self._journal.acknowledge(lines)

    def _fail(self, lines: list[bytes]) -> None:
        size = sum(len(line) for line in lines)
        if size > _LEAST_BATCH_BYTES:
            self._max_bytes = max(_LEAST_BATCH_BYTES, size // 2)
        self._back_off()

    def _back_off(self) -> None:
        # Not shortened by `finish`: the portal is away, and haste would not bring it back.
        time.sleep(self._retry.next_pause_s())
