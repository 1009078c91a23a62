"""The age of a line when a follower receives it, with 1, 100 and 1,000 followers.

`python -m bench.logs.follow`. Portal, writers and followers share the machine. The portal and Ray
are measured alternately.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from bench import ray_peer
from bench.cpu_time import cpu_seconds
from bench.logs import ground, pipe_follow, ray_follow
from bench.logs.ground import LogGround, Talker
from bench.logs.talking import talking
from bench.measure import NoPeer, Peer, figures, median, report, say
from bench.own_portal import CHECKOUT
from bench.ray_peer import Ray

JOBS = 10
LINES_PER_S = 10_000
FOLLOWERS = (1, 100, 1000)
ROUNDS = 3

# For so long web's processor time is measured without followers.
ALONE_S = 10.0

Seen = dict[str, Any]  # the summary of `bench.logs.readers.summary`, and the number of followers


def followed(place: LogGround, talkers: list[Talker], count: int) -> Seen:
    """Measure `count` followers, which are distributed over the jobs."""
    portal = place.portal
    command = [sys.executable, "-m", "bench.logs.followers", "--url", portal.home.url]
    command += ["--token", portal.home.admin_token_file.read_text().strip()]
    command += ["--project", portal.project, "--count", str(count)]
    command += ["--server-pid", str(portal.pid_of("web"))]
    command += ["--jobs", *(str(each.job_id) for each in talkers)]
    done = subprocess.run(command, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True)
    found: Seen = json.loads(done.stdout)
    if found["followers"] < count:
        raise RuntimeError(f"the portal served only {found['followers']} of {count} followers")
    return found


def ours(place: LogGround, count: int) -> Seen:
    """Measure one round of the portal."""
    # New jobs each time: streams that fell behind must not be the next round's load.
    talkers = place.start(JOBS)
    with talking(place, talkers, LINES_PER_S):
        alone = cpu_without_followers(place)
        seen = followed(place, talkers, count)
    lines_per_s = seen["lines_per_s"] * count
    seen["cpu_us_per_line"] = 1e6 * (seen["server_cpu"] - alone) / lines_per_s
    return print_round("ours", count, seen)


def cpu_without_followers(place: LogGround) -> float:
    """Return the share of a core that web uses to store the lines."""
    pid = place.portal.pid_of("web")
    before = cpu_seconds(pid)
    time.sleep(ALONE_S)
    return (cpu_seconds(pid) - before) / ALONE_S


def rays(ray: Ray, count: int) -> Seen:
    """Measure one round of Ray. A single follower is Ray's command, as its users run it."""
    with ray_follow.talking(ray, JOBS, LINES_PER_S) as talk:
        found = talk.followed_by_command() if count == 1 else talk.followed(count)
    return print_round("ray", count, found)


def bare(count: int) -> Seen:
    """Measure one round of a bare pipe, at the rate of one job."""
    return print_round("pipe", count, pipe_follow.followed(LINES_PER_S / JOBS))


def print_round(who: str, count: int, seen: Seen) -> Seen:
    """Report the round on stderr and return it."""
    rows = ", ".join(f"{name} {each:.3f}" for name, each in seen.items())
    say(f"{who}, {count:5d} followers: {rows}")
    return seen


def peer_of(count: int, version: str, rounds: Sequence[Mapping[str, Any]]) -> str:
    """Describe the peer: its version, and where it did not serve all followers or fell behind."""
    served = min(each["followers"] for each in rounds)
    reached = median(each["lines_per_s"] for each in rounds)
    parts = [version]
    if served < count:
        parts.append(f"{served:.0f} followers, no more were served")
    if reached < 0.95 * LINES_PER_S / JOBS:
        parts.append(f"{reached:.0f} lines/s of {LINES_PER_S // JOBS} reached each")
    return "; ".join(parts)


def main() -> None:
    """Parse the command line, measure, and report the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--followers", type=int, nargs="+", default=FOLLOWERS)
    parser.add_argument("--without-ray", action="store_true")
    options = parser.parse_args()
    with figures():
        measure(options.followers, options.rounds, with_ray=not options.without_ray)


def measure(followers: Sequence[int], rounds: int, *, with_ray: bool) -> None:
    """Measure followers of the portal and of Ray alternately, and report."""
    found: dict[int, list[Seen]] = {count: [] for count in followers}
    peers: dict[int, list[Seen]] = {count: [] for count in followers}
    with ExitStack() as stack:
        ray = stack.enter_context(ray_peer.running()) if with_ray else None
        place = stack.enter_context(ground.running())
        for _ in range(rounds):
            for count in followers:
                found[count].append(ours(place, count))
                peers[count].append(rays(ray, count) if ray is not None else bare(count))
        version = ray.version() if ray else ""
    for count in followers:
        peer = peer_of(count, version, peers[count]) if version else pipe_follow.PEER
        _report(count, found[count], peers[count], peer)


def _report(count: int, ours: Sequence[Seen], theirs: Sequence[Seen], peer: str) -> None:
    for name in ("p50", "p99"):
        values = [each[name] for each in ours]
        report(
            f"follow_{name}_s_{count}",
            median(values),
            "s",
            peer=Peer(peer, median(each[name] for each in theirs)),
            spread=(min(values), max(values)),
        )
    costs = [each["cpu_us_per_line"] for each in ours]
    report(
        f"follow_cpu_us_per_line_{count}",
        median(costs),
        "us",
        peer=NoPeer("a pipe has one reader, and Ray's head also collects the lines"),
        spread=(min(costs), max(costs)),
    )


if __name__ == "__main__":
    main()
