"""Jobs that a fleet runs while it is broken: each step is seen, each life is witnessed."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from jobs.backends.fake.backend import FakePlan
from monarch_client.rest.client import PortalClient
from monarch_client.rest.stream import Follower, NewLines
from tests.faults.fleet import Fleet
from tests.faults.witness import BEGIN, Witness
from tests.waiting import eventually

LOCAL = {"infra": "local"}
# Prints ten lines a second until the witness lets it go on. The first failure would end the other
# rank: rank 0 fails when the witness has seen that one end.
STEADY = """
i=0
while :; do
  read -t 0.1 -r word <&3
  [ $? -gt 128 ] || break
  i=$((i + 1)); echo "line $i"
done
echo "last $i"
[ $SKYPILOT_NODE_RANK = 0 ] || exit 0
until [ "$word" = peer-ended ]; do read -r word <&3 || break; done
exit 7
"""


def steady(port: int) -> dict[str, Any]:
    """Build a job of two nodes that runs until its gate is opened, and then fails with 7."""
    run = BEGIN.format(port=port) + STEADY
    return {"name": "steady", "num_nodes": 2, "run": run, "resources": LOCAL}


def short(port: int, exit_code: int = 0) -> dict[str, Any]:
    """Build a job of one node that begins, prints two lines, and ends."""
    run = BEGIN.format(port=port) + f'echo "line 1"; echo "last 1"; exit {exit_code}\n'
    return {"name": "short", "run": run, "resources": LOCAL}


def counting(port: int, lines: int, exit_code: int) -> dict[str, Any]:
    """Build a job of one node that prints `lines` lines, ten a second, and ends."""
    say = f'for i in $(seq {lines}); do echo "line $i"; sleep 0.1; done\n'
    run = BEGIN.format(port=port) + say + f'echo "last {lines}"; exit {exit_code}\n'
    return {"name": "counting", "run": run, "resources": LOCAL}


def pulled(fleet: Fleet, name: str) -> dict[str, Any]:
    """Plan a job whose ten lines a second are fetched by a follower, until `finish_pulled`."""
    lines = tuple(f"line {number}" for number in range(1, 2000))
    fleet.fake.set_plan(FakePlan(lines=lines, line_every_s=0.1), name)
    return {"name": name, "run": "not run"}


def finish_pulled(fleet: Fleet, job_id: int, exit_code: int) -> list[str]:
    """End such a job and return every line that it has printed."""
    there = [cluster.name for cluster in fleet.fake.existing()]
    [name] = [name for name in there if name.endswith(f"-{job_id}-1")]
    fleet.fake.finish(name, exit_code)
    frames = map(json.loads, fleet.fake.frames(name))
    return [frame["text"] for frame in frames if frame["kind"] == "line"]


def assert_every_line_once(lines: list[str]) -> None:
    """Check for `line 1` to `line n`, then `last n`: no number twice, none left out."""
    count = len(lines) - 1
    assert lines == [*(f"line {number}" for number in range(1, count + 1)), f"last {count}"]


class Watcher:
    """A reader that follows a job live through the front door, as `mportal logs -f` does."""

    def __init__(self, fleet: Fleet, job_id: int) -> None:
        self.seen: list[tuple[float, str]] = []
        self.is_done = False
        self._client = PortalClient(fleet.door.url, fleet.token)
        self._job_id = job_id
        self._follower = Follower(self._client, "default", job_id)
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._thread.start()

    def __str__(self) -> str:
        return f"the watcher of job {self._job_id}"

    def first_after(self, moment: float, limit_s: float) -> float:
        """Return the seconds until a line was printed after `moment`, at most `limit_s`."""

        def came() -> bool:
            return any(at > moment for at, _ in list(self.seen))

        assert eventually(came, timeout_s=limit_s), f"{self} has no line within {limit_s} s"
        return min(at for at, _ in list(self.seen) if at > moment) - moment

    def texts(self) -> list[str]:
        """Return every line, once the job is over and the stream has reported its end."""
        self._thread.join(30)
        assert self.is_done, "the stream has not ended"
        return [text for _, text in self.seen]

    def _watch(self) -> None:
        with self._client:
            for event in self._follower.events():
                if isinstance(event, NewLines):
                    now = time.monotonic()
                    self.seen += [
                        (now, line.text) for line in event.lines if line.stream == "stdout"
                    ]
        self.is_done = True


def begins_within(witness: Witness, job_id: int, limit_s: float) -> bool:
    """Whether a job of one node begins to run in time."""
    return eventually(lambda: witness.of(job_id), timeout_s=limit_s)
