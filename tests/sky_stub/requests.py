"""The server's requests: each works in a thread of its own, and none outlives the server."""

from __future__ import annotations

import json
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sky_stub import wire
from tests.sky_stub.errors import CancelledRequestError, HaltedRequestError, SkyError

ACTIVE = ("PENDING", "RUNNING")


@dataclass
class Request:
    """One request. `name` is the verb, as in "launch"."""

    name: str
    cluster: str = ""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "PENDING"
    created_at: float = field(default_factory=time.time)
    finished_at: float | None = None
    value: Any = None
    error: SkyError | None = None
    lines: list[str] = field(default_factory=list)
    is_cancelled: threading.Event = field(default_factory=threading.Event)
    is_done: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def say(self, line: str) -> None:
        """Append to the request's own log."""
        self.lines.append(f"{line}\n")

    def wait(self, seconds: float) -> None:
        """Wait. CancelledRequestError if the request is cancelled meanwhile."""
        if self.is_cancelled.wait(seconds):
            raise CancelledRequestError

    def finish(self, status: str) -> None:
        """Finish the request. The status that was set first stays."""
        if not self.is_done.is_set():
            self.status = status
            self.finished_at = time.time()
            self.is_done.set()

    def payload(self, *, readable: bool) -> dict[str, Any]:
        """Serialize the request as /api/get returns it or, if `readable`, as /api/status does."""
        error = wire.error_field(self.error) if self.error is not None else "null"
        return {
            "request_id": self.id,
            "name": f"sky.{self.name}",
            "entrypoint": self.name if readable else wire.pickled(print),
            "request_body": "null" if readable else wire.pickled(None),
            "status": self.status,
            "created_at": self.created_at,
            "user_id": wire.USER_HASH,
            "return_value": "null" if readable else json.dumps(self.value),
            "error": "null" if readable else error,
            "pid": None,
            "schedule_type": "long" if self.name in {"launch", "exec", "down"} else "short",
            "user_name": wire.USER,
            "cluster_name": self.cluster or None,
            "status_msg": None,
            "should_retry": False,
            "finished_at": self.finished_at,
            "file_mounts_blob_id": None,
        }


Work = Callable[[Request], Any]


class Requests:
    """All requests since the server began."""

    def __init__(self) -> None:
        self._all: dict[str, Request] = {}

    def begin(self, request: Request, work: Work) -> None:
        """Start the work of a request."""
        self._all[request.id] = request
        request.thread = threading.Thread(target=self._carry_out, args=(request, work), daemon=True)
        request.thread.start()

    def find(self, prefix: str) -> Request | None:
        """Find the request whose id begins with `prefix`."""
        return next((each for key, each in self._all.items() if key.startswith(prefix)), None)

    def listed(self, cluster: str | None = None, *, finished: bool) -> list[Request]:
        """List the requests, newest first; only the active ones unless `finished`."""
        chosen = [
            each
            for each in self._all.values()
            if (finished or each.status in ACTIVE) and cluster in (None, each.cluster)
        ]
        return chosen[::-1]

    def cancel(self, ids: list[str] | None) -> list[str]:
        """Cancel these requests, or all; return the ids of those that were active."""
        chosen = self.listed(finished=False) if ids is None else map(self.find, ids)
        ended = [each for each in chosen if each is not None and each.status in ACTIVE]
        for each in ended:
            each.is_cancelled.set()
            each.finish("CANCELLED")
        return [each.id for each in ended]

    def cancel_others(self, own: Request) -> None:
        """End all other requests for a cluster, as SkyPilot does before it terminates one."""
        others = [each for each in self.listed(own.cluster, finished=True) if each.name != own.name]
        self.cancel([each.id for each in others])
        for each in others:
            # What a cancelled launch was about to write must not come after the end.
            if each.thread is not None:
                each.thread.join()

    def forget(self, request: Request) -> None:
        """Forget the request, as a server that was restarted does."""
        self._all.pop(request.id, None)

    def _carry_out(self, request: Request, work: Work) -> None:
        if not request.is_done.is_set():
            request.status = "RUNNING"
        try:
            request.value = work(request)
            request.finish("SUCCEEDED")
        except CancelledRequestError:
            request.finish("CANCELLED")
        except HaltedRequestError:
            self.forget(request)
        except SkyError as error:
            request.error = error
            request.finish("FAILED")
        except Exception:  # noqa: BLE001 - a fault of the stub itself: the client must hear of it
            request.error = SkyError("RuntimeError", f"stub: {traceback.format_exc()}")
            request.finish("FAILED")
