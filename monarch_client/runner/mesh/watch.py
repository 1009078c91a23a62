"""The watch over the meshes on rank 0: a thread that reads their state and reports changes.

It reads from a mesh admin in a separate process. No error here affects the job.
"""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

from monarch_client.runner.mesh.admin import MeshAdmin
from monarch_client.runner.mesh.admin_process import MeshAdminProcess
from monarch_client.runner.mesh.sizes import fitting
from monarch_client.runner.mesh.walk import Walk
from monarch_client.runner.vocabulary import mesh_states
from monarch_client.runner.vocabulary.carriers import NONE
from monarch_client.runner.vocabulary.frames import MESH, state_line

if TYPE_CHECKING:
    import ssl
    from pathlib import Path
    from typing import Any, Callable

    from monarch_client.runner.place import Place

    Tree = dict[str, Any]

PACE_S = 3.0
# After a missing answer: look again before it is reported.
_SECOND_LOOK_S = 1.0
_STEP_S = 0.25
# A driver that ends soon needs no admin.
_ADMIN_AFTER_S = 2.0
# The largest fraction of time that looks take: large meshes are looked at less often.
_PART = 0.2
_LONGEST_PAUSE_S = 20.0
# So many looks in a row follow each other by a second only, however long they take.
_MOST_SECOND_LOOKS = 6
# An unchanged tree is reported again, as a sign of life.
REPORT_AGAIN_S = 15.0
_MOST_REMARKS = 40
_TOO_SHORT = "The driver ended before the procs and actors of this host were read."
# The kind of a driver's report on a loss.
_LOSS_REPORTED = "monarch"


class MeshWatch:
    """A watch from `start` to `stop`, on rank 0 of a Monarch job that reports samples."""

    def __init__(self, place: Place) -> None:
        # Whether the driver has shut down the worker of a rank.
        self.has_ended: Callable[[int], bool] = lambda _rank: False
        # Whether the process of a proc (rank, name) has exited.
        self.has_proc_ended: Callable[[int | None, str], bool] = lambda _rank, _name: False
        self.admin_process = MeshAdminProcess(place)
        self._place = place
        self._wanted_at: float | None = None
        self._stopping = threading.Event()
        self._urls: tuple[str, ...] = ()
        self._admins: list[MeshAdmin] = []
        self._walk = Walk(place.config.rank_at, self._is_proc_gone)
        self._reported: Tree | None = None
        self._reported_at = 0.0
        self._second_looks = 0
        self._has_report = False
        self._was_wanted = False
        # Hosts and procs by (host, proc): losses in the log, and the latest losses.
        self._remarked: set[tuple[str, str, str]] = set()
        self._lost: set[tuple[str, str]] = set()

    def start(self) -> None:
        """Start the watch if the job has meshes to watch."""
        config = self._place.config
        if config.is_monarch and config.metrics_s > 0 and config.carrier != NONE:
            threading.Thread(target=self._watch, daemon=True, name="mesh-watch").start()

    def stop(self) -> None:
        """Stop the watch."""
        self._stopping.set()

    def report_last(self) -> None:
        """Report the hosts of a driver that ended before the first look at its meshes."""
        if not self._was_wanted or self._reported is not None:
            return
        config = self._place.config
        hosts = [
            {
                "id": f"{config.address_of(rank)}:{config.port}",
                "rank": rank,
                "state": mesh_states.ENDED if self.has_ended(rank) else mesh_states.UNKNOWN,
                "why": _TOO_SHORT,
                "left_out": 0,
                "procs": [],
            }
            for rank in config.ranks
        ]
        self._report({"answers": True, "why": "", "left_out": 0, "hosts": hosts})

    def _watch(self) -> None:
        pause_s = PACE_S
        while self._rest(pause_s):
            began_at = time.monotonic()
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - whatever the admin answers
                self._report(
                    {"answers": False, "why": repr(error)[:500], "left_out": 0, "hosts": []}
                )
            pause_s = self._pause_after(time.monotonic() - began_at)

    def _pause_after(self, took_s: float) -> float:
        """Return the seconds to wait after a look that took `took_s`."""
        if self._walk.misses.is_uncertain and self._second_looks < _MOST_SECOND_LOOKS:
            self._second_looks += 1
            return _SECOND_LOOK_S
        self._second_looks = 0
        return min(_LONGEST_PAUSE_S, max(PACE_S, took_s / _PART))

    def _rest(self, seconds: float) -> bool:
        """Wait for the next look; return False if the watch has ended.

        A driver that reports a loss is about to end: look at once, and trust the report.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._stopping.wait(_STEP_S):
                return False
            if not self._has_report and self._place.folder.report.exists():
                self._has_report = True
                if _kind_in(self._place.folder.report) == _LOSS_REPORTED:
                    self._walk.misses.trust_reported_loss()
                    break
            if self._is_admin_new():
                break
        return True

    def _is_admin_new(self) -> bool:
        """Keep an admin running while the driver has meshes; return whether a new one listens."""
        now = time.monotonic()
        if not self._place.folder.watch.exists():
            self._wanted_at = None
        elif self._wanted_at is None:
            self._wanted_at, self._was_wanted = now, True
        elif now - self._wanted_at >= _ADMIN_AFTER_S:
            self.admin_process.keep()
        return not self._urls and bool(_urls_in(self._place))

    def _look(self) -> None:
        if not self._find_admins():
            return
        tree = self._walk.look(self._admins)
        # Nodes stop to answer while the meshes are being ended.
        is_ending = _urls_in(self._place) != self._urls or self._is_ending()
        if tree is not None and not is_ending and self._is_reliable(tree):
            hosts = [self._host_as_it_is(host) for host in tree["hosts"]]
            self._report({**tree, "hosts": hosts})
            self._remark_losses(hosts)

    def _is_reliable(self, tree: Tree) -> bool:
        """Whether the meshes are silent, not the admin, which may have just ended."""
        if not tree["answers"] or not self._walk.misses.are_any:
            return True
        is_there = all(admin.ask_root().is_ok for admin in self._admins)
        if not is_there:
            self._walk.misses.clear()
        return is_there

    def _is_proc_gone(self, rank: int | None, name: str) -> bool:
        return self.has_proc_ended(rank, name)

    def _host_as_it_is(self, host: Tree) -> Tree:
        """Return the host, marked as ended if the driver has shut it down."""
        if (
            host["state"] == mesh_states.UP
            or host["rank"] is None
            or not self.has_ended(host["rank"])
        ):
            return host
        why = "The driver has shut this host down."
        return {**host, "state": mesh_states.ENDED, "why": why, "procs": [], "left_out": 0}

    def _is_ending(self) -> bool:
        try:
            return self._place.folder.goal.read_text() == "end"
        except OSError:
            return False

    def _find_admins(self) -> bool:
        """Whether there is an admin."""
        urls = _urls_in(self._place)
        if urls != self._urls:
            for admin in self._admins:
                admin.close()
            context = _context_of(self._place)
            self._urls, self._admins = urls, [MeshAdmin(url, context) for url in urls]
            self._walk.misses.clear()
        return bool(urls)

    def _report(self, tree: Tree) -> None:
        now = time.monotonic()
        is_due = self._reported is None or now - self._reported_at >= REPORT_AGAIN_S
        if not is_due and _shape_of(tree) == _shape_of(self._reported):
            return
        self._reported, self._reported_at = tree, now
        rank = self._place.rank
        line = fitting(tree, lambda each: state_line(rank, MESH, each))
        self._place.samples.put(rank, line, MESH)

    def _remark_losses(self, hosts: list[Tree]) -> None:
        """Record new losses in the log as well, which also sends the tree at once."""
        before, self._lost = self._lost, set()
        for host in hosts:
            for what, node in [("host", host), *(("proc", proc) for proc in host["procs"])]:
                key = (host["id"], "" if node is host else node["id"])
                if node["state"] not in mesh_states.LOST:
                    continue
                self._lost.add(key)
                # A line in the log cannot be taken back: a host may just be shutting down.
                is_due = what == "proc" or key in before
                remark = (*key, node["state"])
                if is_due and remark not in self._remarked and len(self._remarked) < _MOST_REMARKS:
                    self._remarked.add(remark)
                    where = "" if host["rank"] is None else f" of rank {host['rank']}"
                    self._place.recorder.remark(
                        f"The {what} {node['id']}{where} is {node['state']}. {node['why']}"
                    )


def _kind_in(report: Path) -> str:
    try:
        return str(json.loads(report.read_text(encoding="utf-8"))["kind"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _urls_in(place: Place) -> tuple[str, ...]:
    """Return the addresses of the admins; none while the driver has no meshes."""
    if not place.folder.watch.exists():
        return ()
    try:
        urls = json.loads(place.folder.admins.read_text(encoding="utf-8"))["urls"]
        return tuple(str(url) for url in urls)
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def _context_of(place: Place) -> ssl.SSLContext | None:
    """Return the admin's TLS context; None if workers do not use TLS."""
    if place.config.tls is None:
        return None
    # Importing ssl takes time: only jobs with TLS do it.
    from monarch_client.runner.base import tls  # noqa: PLC0415

    return tls.client_context(place.folder.certificates)


def _shape_of(tree: Tree | None) -> Any:
    """Return the part of a tree whose changes are reported at once, without counts of messages."""
    return tree and (
        tree["answers"],
        [_states_of(host) for host in tree["hosts"]],
    )


def _states_of(node: Tree) -> Any:
    below = [*node.get("procs", ()), *node.get("actors", ())]
    return (node["id"], node["state"], [_states_of(child) for child in below])
