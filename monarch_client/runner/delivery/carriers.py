"""Choose the carrier of rank 0: it pushes frames to the portal, or prints them to its log."""

from __future__ import annotations

import ipaddress
import threading
import time
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from monarch_client.runner.base.small_files import write_note
from monarch_client.runner.delivery.plain_carrier import PlainCarrier
from monarch_client.runner.delivery.print_carrier import PrintCarrier, print_verdict
from monarch_client.runner.delivery.push import PortalConnection, PushCarrier
from monarch_client.runner.vocabulary.carriers import AUTO, NONE, PULL, PUSH

if TYPE_CHECKING:
    from monarch_client.runner.delivery.push import Answer, Callbacks
    from monarch_client.runner.journal.journal import Journal
    from monarch_client.runner.place import Place

PROBE_S = 10.0
# A portal that refuses connections may be restarting.
_REFUSED_S = 4.0
_PAUSE_S = 0.5
_OK = 200


class Carrier(Protocol):
    """A deliverer of the frames in the journal."""

    def start(self) -> None:
        """Start to deliver."""

    def finish(self) -> None:
        """Finish: no further frame will be recorded."""


def carrier_of(place: Place, journal: Journal, callbacks: Callbacks) -> Carrier:
    """Return the carrier that the attempt requests, or that an earlier runner of it chose."""
    try:
        wanted = place.folder.carrier.read_text()
    except OSError:
        wanted = place.config.carrier
    if wanted == AUTO:
        return _AutoCarrier(place, journal, callbacks)
    return _named(wanted, place, journal, callbacks)


def _named(name: str, place: Place, journal: Journal, callbacks: Callbacks) -> Carrier:
    if name == NONE:
        return PlainCarrier(journal, callbacks.on_drained)
    if name == PULL:
        carrier = PrintCarrier(journal, place.config.attempt_id, callbacks.on_drained)
        carrier.samples = place.samples
        return carrier
    pushing = PushCarrier(journal, PortalConnection(place.config), callbacks, place.samples)
    if place.folder.shared is not None:
        # SkyPilot started the runner and stores its output.
        pushing.on_acknowledged = lambda: print_verdict(
            place.folder, place.config.attempt_id, journal.last_number(0) + 1
        )
    return pushing


class _AutoCarrier:
    """A carrier that probes the portal once, and then pushes or prints accordingly."""

    def __init__(self, place: Place, journal: Journal, callbacks: Callbacks) -> None:
        self._place = place
        self._journal = journal
        self._callbacks = callbacks
        self._lock = threading.Lock()
        self._chosen: Carrier | None = None
        self._is_finishing = False

    def start(self) -> None:
        """Probe the portal on a separate thread."""
        threading.Thread(target=self._choose, daemon=True, name="probe").start()

    def finish(self) -> None:
        """Finish the chosen carrier, now or once it is chosen."""
        with self._lock:
            self._is_finishing = True
            chosen = self._chosen
        if chosen is not None:
            chosen.finish()

    def _choose(self) -> None:
        place = self._place
        why = probe_portal(place)
        name = PULL if why else PUSH
        write_note(place.folder.carrier, name)
        if why:
            place.recorder.remark(
                f"This node does not reach the portal at {place.config.portal_url} ({why}): the "
                "portal reads these lines in SkyPilot's log, some seconds later."
            )
        carrier = _named(name, place, self._journal, self._callbacks)
        carrier.start()
        with self._lock:
            self._chosen = carrier
            is_finishing = self._is_finishing
        if is_finishing:
            carrier.finish()


def probe_portal(place: Place) -> str:
    """Probe the portal for up to PROBE_S; return why it is unreachable, or ""."""
    probe = _Probe(place)
    probe.start()
    # A name lookup has no timeout of its own.
    probe.join(PROBE_S)
    return probe.error


class _Probe(threading.Thread):
    def __init__(self, place: Place) -> None:
        super().__init__(daemon=True, name="probe")
        self.error = f"no answer in {PROBE_S:g} s"
        self._config = place.config
        self._until = time.monotonic() + PROBE_S

    def run(self) -> None:
        """Probe until the portal answers or the time is over."""
        if not self._config.portal_url:
            self.error = "it has no address"
            return
        patience = 0.0 if _is_loopback(self._config.portal_url) else _REFUSED_S
        give_up_at = time.monotonic() + patience
        while True:
            error = self._ask()
            if not error or time.monotonic() >= give_up_at:
                self.error = error
                return
            time.sleep(_PAUSE_S)

    def _ask(self) -> str:
        left = max(0.1, self._until - time.monotonic())
        portal = PortalConnection(self._config, left)
        try:
            # No frames: a sign of life.
            return _error_in(portal.post(b""))
        except OSError as error:
            return str(error)
        finally:
            portal.close()


def _error_in(answer: Answer) -> str:
    is_portal = answer.code or (answer.status == _OK and answer.is_acknowledgement)
    return "" if is_portal else f"status {answer.status} from another server"


def _is_loopback(url: str) -> bool:
    """Whether the address is this machine, where a second try cannot find another one."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
