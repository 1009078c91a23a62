"""Wait for changes in a folder: notifications of the system with `watchfiles`, or looks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from monarch_client.sync.ignore import is_always_ignored

log = logging.getLogger(__name__)

# Editors write several files, and each in several steps.
_DEBOUNCE_MS, _STEP_MS = 400, 30
_TIMEOUT_MS = 250
_LOOK_EVERY_S = 0.5


class FolderWatch:
    """A watch over a folder, from the moment that it is made. `is_notified`: it need not look."""

    def __init__(self, folder: Path, stop: threading.Event, *, notifies: bool = True) -> None:
        self._stop = stop
        self._notifications = _notifications(folder, stop) if notifies else None

    @property
    def is_notified(self) -> bool:
        """Whether the system reports changes."""
        return self._notifications is not None

    def wait(self, is_changed: Callable[[], bool]) -> bool:
        """Wait until `is_changed`, which scans the folder, is true; False once `stop` is set."""
        while not self._stop.is_set():
            if self._may_have_changed() and is_changed():
                return True
        return False

    def _may_have_changed(self) -> bool:
        if self._notifications is None:
            return not self._stop.wait(_LOOK_EVERY_S)
        try:
            return bool(next(self._notifications, None))
        except OSError as error:
            log.warning("Changes are found by looking, since notifications fail: %s", error)
            self._notifications = None
            return True


def _notifications(folder: Path, stop: threading.Event) -> Iterator[Any] | None:
    """Return sets of changes from now on, empty ones after a while without any; None: none come."""
    try:
        import watchfiles  # noqa: PLC0415 - optional
    except ImportError:
        return None
    changes = watchfiles.watch(
        folder,
        watch_filter=lambda _change, path: not is_always_ignored(Path(path).relative_to(folder)),
        stop_event=stop,
        debounce=_DEBOUNCE_MS,
        step=_STEP_MS,
        rust_timeout=_TIMEOUT_MS,
        yield_on_timeout=True,
    )
    try:
        # The watch begins with the first request.
        next(changes, None)
    except OSError as error:
        # Such as the limit on watched folders.
        log.debug("Changes are found by looking: %s", error)
        return None
    return changes
