"""How old a line is when a follower has it, with 1, 100 and 1,000 followers.

`python -m bench.logs.follow`. Portal, writers and followers share the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from bench.logs import ground
from bench.logs.ground import LogGround, Talker
from bench.logs.talking import talking
from bench.measure import median, report, say
from bench.own_portal import CHECKOUT

JOBS = 10
LINES_PER_S = 10_000
FOLLOWERS = (1, 100, 1000)
ROUNDS = 3


def followed(place: LogGround, talkers: list[Talker], count: int) -> dict[str, Any]:
    """What so many followers saw, dealt over the jobs."""
    portal = place.portal
    command = [sys.executable, "-m", "bench.logs.followers", "--url", portal.home.url]
    command += ["--token", portal.home.admin_token_file.read_text().strip()]
    command += ["--project", portal.project, "--count", str(count)]
    command += ["--jobs", *(str(each.job_id) for each in talkers)]
    done = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    say(f"{count:5d} followers: " + ", ".join(f"{name} {each:.3f}" for name, each in found.items()))
    return found


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--followers", type=int, nargs="+", default=FOLLOWERS)
    options = parser.parse_args()
    found: dict[int, list[dict[str, Any]]] = {count: [] for count in options.followers}
    with ground.running() as place:
        for _ in range(options.rounds):
            for count in options.followers:
                # New jobs each time: streams that fell behind must not be the next round's load.
                talkers = place.start(JOBS)
                with talking(place, talkers, LINES_PER_S):
                    found[count].append(followed(place, talkers, count))
    for count, rounds in found.items():
        for name in ("p50", "p99"):
            values = [each[name] for each in rounds]
            report(
                f"follow_{name}_s_{count}", median(values), "s", spread=(min(values), max(values))
            )


if __name__ == "__main__":
    main()
