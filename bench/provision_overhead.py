"""The time that the portal adds to SkyPilot's own, from submitting a job to its first line.

`make bench NAME=provision_overhead`, as root: it runs inside the Slurm cluster of
tests/cluster/rig. What each figure means, and why it is fair, is in bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import on_rig, sky_peer
from bench.measure import Peer, figures, median, report, say
from bench.sky_peer import FIRST_LINE, BareSky
from monarch_client.rest.client import PortalClient
from monarch_client.rest.stream import Follower, NewLines
from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from monarch_client.wire.attempts import Attempt
from tests.cluster.portal import PortalOnRig, portal_on
from tests.cluster.rig import places
from tests.cluster.rig.machine import Rig

PROJECT = "default"
LIMIT_S = 600.0
SAID = "first line "
# The job itself reports the time, so that both sides read one clock.
RUN = f"date +%s.%N | tee {FIRST_LINE} | sed 's/^/{SAID}/'"

Timeline = dict[str, float]  # step -> seconds since 1970


@dataclass(frozen=True, slots=True)
class Pair:
    """One start of ours and one of the peer's: when each step was reached."""

    ours: Timeline
    bare: Timeline

    @property
    def added_s(self) -> float:
        """Seconds from the POST to the line at a client, less those of bare SkyPilot."""
        return self.ours["seen"] - self.ours["posted"] - self.bare_s

    @property
    def own_s(self) -> float:
        """The part of it that is the portal's whatever else the machine does.

        More seconds than the bare client needs until SkyPilot's server has the request, and the
        way of the line from the node to a client.
        """
        asking = self.ours["taken"] - self.ours["posted"]
        return asking - self.bare_request_s + self.ours["seen"] - self.ours["line"]

    @property
    def bare_request_s(self) -> float:
        """Seconds from the bare call until SkyPilot's server has the request."""
        return self.bare["taken"] - self.bare["called"]

    @property
    def bare_s(self) -> float:
        """Seconds from the call to the line on the node."""
        return self.bare["line"] - self.bare["called"]


class Bench:
    """A portal on the rig, and beside it a bare client of its SkyPilot server."""

    def __init__(
        self, rig: Rig, portal: PortalOnRig, client: PortalClient, bare: BareSky, sky: SkyCaller
    ) -> None:
        self.rig = rig
        self.portal = portal
        self.client = client
        self.bare = bare
        self.sky = sky

    def cold(self, number: int, *, is_kept: bool) -> tuple[Pair, str]:
        """Measure a launch of the portal and a bare one.

        Their clusters are terminated before the next launch, unless `is_kept`.
        """
        ours, cluster = self._submit({"reuse": True, "idle": {"minutes": 120}} if is_kept else {})
        if not is_kept:
            self._until("a rig without clusters", self._is_empty)
        name = f"bare-{number}"
        bare = self._add_requests(self.bare.start("launch", name), name)
        if not is_kept:
            self.bare.down(name)
            self._until("a rig without clusters", self._is_empty)
        return Pair(ours, bare), cluster

    def warm(self, name: str) -> Pair:
        """Measure a start on the portal's warm cluster, and a bare one on its own cluster."""
        ours, _ = self._submit({"reuse": True, "idle": {"minutes": 120}})
        return Pair(ours, self._add_requests(self.bare.start("exec", name), name))

    def clear(self, ours: str, name: str) -> None:
        """Terminate the warm clusters of both."""
        self.client.take_down(ours)
        self.bare.down(name)
        self._until("a rig without clusters", self._is_empty)

    def _submit(self, block: dict[str, Any]) -> tuple[Timeline, str]:
        """Run one job and return its timeline and cluster, once that is idle or terminated."""
        resources = {"infra": f"slurm/rig/{places.PARTITIONS[0]}"}
        spec = {"name": "overhead", "resources": resources, "run": RUN, "portal": block}
        times: Timeline = {"posted": time.time()}
        job = self.client.submit(PROJECT, spec)
        times["answered"] = time.time()
        for event in Follower(self.client, PROJECT, job.id).events():
            for line in event.lines if isinstance(event, NewLines) else ():
                if line.text.startswith(SAID) and "seen" not in times:
                    times["seen"] = time.time()
                    times["line"] = float(line.text.removeprefix(SAID))
                    self._note_staging(job.id, times)
        if "seen" not in times:
            raise RuntimeError(f"job {job.id} has no first line: {self.portal.log(job.id)}")
        [attempt] = self.client.attempts(PROJECT, job.id)
        cluster = str(self.portal.attempts(job.id)[0]["cluster_name"])
        self._add_requests(times, cluster)
        times |= _stages(attempt)
        self._until("an end of the attempt", lambda: self._is_over(cluster, is_kept=bool(block)))
        return times, cluster

    def _note_staging(self, job_id: int, times: Timeline) -> None:
        """Add the times of the steps that left files, and copy what was staged for the peer."""
        row = self.portal.attempts(job_id)[0]
        folder = self.portal.home.path / "skypilot" / "staging" / row["cluster_name"]
        name = f"mp-{row['id']}"
        staged = folder / f"{name}.d" / name
        times["staged"] = staged.stat().st_mtime
        times["sent"] = (folder / f"{name}.outcome").stat().st_mtime
        self.bare.learn(staged, self.portal.job(job_id)["spec"])

    def _add_requests(self, times: Timeline, cluster: str) -> Timeline:
        """Add the times at which SkyPilot's server took and finished the cluster's newest start."""
        rows = self.sky.call("requests_of", {"cluster_name": cluster}, 60)
        start = next(row for row in rows if row["name"].rpartition(".")[2] in {"launch", "exec"})
        times["taken"] = float(start["created_at"])
        if start["finished_at"]:
            times["done"] = float(start["finished_at"])
        return times

    def _is_over(self, cluster: str, *, is_kept: bool) -> bool:
        row = self.portal.clusters().get(cluster)
        return (row is not None and row["idle_since"] is not None) if is_kept else row is None

    def _is_empty(self) -> bool:
        return set(self.rig.states().values()) == {"idle"}

    def _until(self, what: str, is_so: Any) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} after {LIMIT_S:.0f} s:\n{self.portal.logs()}")
            time.sleep(0.5)


def _stages(attempt: Attempt) -> Timeline:
    """Return the times at which the portal's own stages began."""
    return {
        f"{stage.name} begins": stage.started_at.timestamp()
        for stage in attempt.stages
        if stage.started_at is not None
    }


def measure(cold: int, warm: int) -> None:
    """Measure and report both figures."""
    with running() as bench:
        # The first launches of a server and of the nodes take longer: they are for the warm starts.
        first, cluster = bench.cold(0, is_kept=True)
        _print_pair("launch", 0, first)
        starts = []
        for number in range(warm + 1):
            starts.append(bench.warm("bare-0"))
            _print_pair("warm start", number, starts[-1])
        bench.clear(cluster, "bare-0")
        launches = []
        for number in range(1, cold + 1):
            launches.append(bench.cold(number, is_kept=False)[0])
            _print_pair("launch", number, launches[-1])
    _report("launch", "launch", launches)
    # The first start on a cluster pays for connections that stay open.
    _report("warm", "exec", starts[1:])


@contextmanager
def running() -> Iterator[Bench]:
    """Start the portal, its user, the bare client, and a reader of SkyPilot's requests."""
    rig = Rig()
    with (
        tempfile.TemporaryDirectory(prefix="mportal-bench-", dir="/tmp") as folder,
        portal_on(rig) as portal,
        PortalClient(portal.url, portal.token) as client,
    ):
        paths = portal.home.skypilot
        known = json.loads(paths.server_file.read_text())
        server = CallerOptions(paths.client_home, known["endpoint"], known["token"])
        sky = SkyCaller(server)
        try:
            with sky_peer.running(server, Path(folder)) as bare:
                yield Bench(rig, portal, client, bare, sky)
        finally:
            sky.close()


def _print_pair(what: str, number: int, pair: Pair) -> None:
    say(
        f"{what} {number}: bare {pair.bare_s:6.2f} s, added {pair.added_s:5.2f} s\n"
        f"   ours: {_since(pair.ours, 'posted')}\n   bare: {_since(pair.bare, 'called')}"
    )


def _since(times: Timeline, begin: str) -> str:
    steps = sorted((moment - times[begin], step) for step, moment in times.items() if step != begin)
    return ", ".join(f"{step} {seconds:.2f}" for seconds, step in steps)


def _report(kind: str, verb: str, pairs: Sequence[Pair]) -> None:
    added, own = (sorted(getattr(pair, name) for pair in pairs) for name in ("added_s", "own_s"))
    peer = f"skypilot {version('skypilot')} {verb}"
    report(
        f"{kind}_added_s",
        median(added),
        "s",
        peer=Peer(peer, median(pair.bare_s for pair in pairs)),
        spread=(added[0], added[-1]),
    )
    report(
        f"{kind}_own_s",
        median(own),
        "s",
        peer=Peer(f"{peer}, its request", median(pair.bare_request_s for pair in pairs)),
        spread=(own[0], own[-1]),
    )
    for name, begin in (("ours", "posted"), ("bare", "called")):
        times = [getattr(pair, name) for pair in pairs]
        steps = sorted(set.intersection(*(set(each) for each in times)) - {begin})
        middle = {step: median(each[step] - each[begin] for each in times) for step in steps}
        row = ", ".join(f"{step} {middle[step]:.2f}" for step in sorted(steps, key=middle.get))  # type: ignore[arg-type]
        say(f"{kind}, {name}, medians since it began, s: {row}")


def main() -> int:
    """Parse the command line, enter the rig if needed, measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", type=int, default=5, help="pairs of launches (5)")
    parser.add_argument("--warm", type=int, default=8, help="pairs of warm starts (8)")
    options = parser.parse_args()
    if not on_rig.is_here():
        return on_rig.enter("bench.provision_overhead")
    with figures():
        measure(options.cold, options.warm)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
