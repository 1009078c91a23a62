"""The jobs of the crash matrix: what each does, and how it ends when nothing breaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.faults.witness import AWAIT, BEGIN

LINES = 20
# More than a chunk's worth in few lines, so that sealing begins while the job runs.
LONG_LINES, LONG_CHARS = 48, 30_000


@dataclass(frozen=True, slots=True)
class Ending:
    """The end that the portal must report. `workers`: exit codes by rank, of the last attempt."""

    status: str
    reason: str
    exit_codes: tuple[int | None, ...]  # one of them
    workers: tuple[int, ...] = ()
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Story:
    """One kind of job. `lines`: what each rank prints if it is left alone."""

    name: str
    run: str
    ending: Ending
    lines: tuple[int, ...]
    is_monarch: bool = False
    # What the test does once all ranks live.
    then: str = ""

    def spec(self, port: int) -> dict[str, Any]:
        """Build the job's specification; its commands report to the witness at `port`."""
        spec: dict[str, Any] = {"name": self.name, "num_nodes": 2, "setup": "echo preparing"}
        spec["run"] = BEGIN.format(port=port) + self.run
        portal = {"meshes": {"all": 2}, "gateway": True}
        return {**spec, "portal": portal} if self.is_monarch else spec


def say(first: int, last: int, padding: str = "") -> str:
    """Print numbered lines."""
    numbers = f"for ((i = {first}; i <= {last}; i++)); do"
    return f'{numbers} echo "line $i{padding}"; done\n'


HALF = LINES // 2
TALK = AWAIT + say(1, HALF) + AWAIT + say(HALF + 1, LINES)
SUCCESS = Ending("SUCCEEDED", "COMPLETED", (0,), (0, 0))
PLAIN = Story("plain", TALK, SUCCESS, (LINES, LINES))
# The first failure ends the other ranks: it waits until rank 0 has ended by itself.
FAILING = Story(
    "failing",
    TALK + f"[ $SKYPILOT_NODE_RANK = 0 ] && exit 0\n{AWAIT}exit 3\n",
    Ending("FAILED", "USER_CODE", (3,), (0, 3)),
    (LINES, LINES),
)
CANCELLED = Story(
    "cancelled",
    AWAIT + say(1, HALF) + "while read -r word <&3; do :; done\n",
    Ending("CANCELLED", "CANCELLED_BY_USER", (None,)),
    (HALF, HALF),
    then="cancel",
)
LOST = replace(
    PLAIN, name="lost", ending=replace(SUCCESS, attempts=2), then="lose the runner of rank 0"
)
LONG = Story(
    "long",
    f"printf -v padding ' %0{LONG_CHARS}d' 0\n" + AWAIT + say(1, LONG_LINES, "$padding") + AWAIT,
    SUCCESS,
    (LONG_LINES, LONG_LINES),
)
DRIVER = f"""\
import os
from monarch.actor import Actor, current_rank, endpoint
from mportal_runtime import meshes

class Adder(Actor):
    @endpoint
    def add(self, number: int) -> int:
        return number + current_rank().rank

def talk(first: int, last: int) -> None:
    while not os.read(3, 1) == b"\\n":
        pass
    for i in range(first, last + 1):
        print(f"line {{i}}", flush=True)

procs = meshes.all.spawn_procs(per_host={{"procs": 1}})
adders = procs.spawn("adders", Adder)
talk(1, {HALF})
answers = adders.add.call(1).get(timeout=60).values()
assert sorted(answers) == [1, 2], answers
talk({HALF + 1}, {LINES})
"""
MONARCH = Story(
    "monarch",
    "cat > driver.py <<'END'\n" + DRIVER + "END\nexec python driver.py\n",
    Ending("SUCCEEDED", "COMPLETED", (0,)),
    (LINES, 0),
    is_monarch=True,
)
