"""The behavior planned by a test: `<state>/plan.json`, read for each request. Keys are optional.

places            [{infra, capacity, usd_per_hour, spot_usd_per_hour, accelerators, can_stop}]:
                  capacity in nodes, prices a node; spot only where it has a price
delays_s          {verb: seconds} that a request's work takes longer; "*" for every verb
provision_s       how long a launch takes to bring the nodes up
minute_s          how long a minute of autostop is (60)
cancel_grace_s    from SIGTERM to SIGKILL when a job is cancelled (2)
interleave        whether lines of different nodes mix byte by byte in a job's log
environment       variables that every node has beside SkyPilot's; {rank} is its rank
interrupted_looks whether a launch that broke off is seen as "INIT" or, untruly, as "UP"
preempted_looks   whether a preempted cluster's row is "gone" or "INIT"
faults            [{do, on, cluster, infra, times, ...}]; the first that fits is taken

A fault happens `times` times, or always. Its `on` is a verb ("launch", "status", "get", "health",
...) or a pattern; `cluster` and `infra` are patterns. Later points of a launch have names of their
own: "launch.provisioning" (the nodes are taken), "launch.up" (they are ready), "launch.submitted"
(the job is on its way); so have "exec.submitted", "down.begun", and "provision": one try of one
place. What a fault may `do`:
late         the request is taken, its answer comes after `seconds` (6)
unavailable  503, nothing is taken
drop         the connection ends without an answer; `taken` (true): the request was
lose         an id is answered, and never known again
error        the request fails with `type`, `message`, `attributes`, `history` (of failover)
hang         the request goes on until it is cancelled
hold         the work waits for as long as the file `<state>/held/<point>` is there
halt         the work stops there and its request is forgotten, as if the server had died
cut          a log's stream ends after `bytes`
"""

from __future__ import annotations

import threading
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.sky_stub.disk import read_json
from tests.sky_stub.witness import Witness

Fault = dict[str, Any]
FILE_NAME = "plan.json"
DEFAULTS: dict[str, Any] = {
    "places": [{"infra": "slurm/stub/all", "capacity": 64}],
    "delays_s": {},
    "provision_s": 0.05,
    "minute_s": 60.0,
    "cancel_grace_s": 2.0,
    "interleave": False,
    "environment": {},
    "interrupted_looks": "INIT",
    "preempted_looks": "gone",
    "faults": [],
}


class Plan:
    """The plan below a folder of state. The events record which faults were used up."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE_NAME
        self._witness = Witness(state)
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Any:
        return {**DEFAULTS, **read_json(self._path, {})}[name]

    def delay_s(self, verb: str) -> float:
        """Return how many seconds longer a request's work takes."""
        delays = self["delays_s"]
        return float(delays.get(verb, delays.get("*", 0)))

    def take(self, kinds: tuple[str, ...], verb: str, cluster: str = "", infra: str = "") -> Fault:
        """Take the first fault of these kinds that fits here and record its use.

        Returns {} if there is none.
        """
        with self._lock:
            for number, fault in enumerate(self["faults"]):
                if fault["do"] in kinds and self._fits(number, fault, (verb, cluster, infra)):
                    name = _name(number, fault)
                    self._witness.note(
                        "fault", fault=name, do=fault["do"], on=verb, cluster=cluster
                    )
                    return dict(fault)
        return {}

    def _fits(self, number: int, fault: Fault, where: tuple[str, str, str]) -> bool:
        patterns = (fault.get("on", "*"), fault.get("cluster", "*"), fault.get("infra", "*"))
        if not all(fnmatchcase(*pair) for pair in zip(where, patterns, strict=True)):
            return False
        if "times" not in fault:
            return True
        return len(self._witness.events("fault", fault=_name(number, fault))) < fault["times"]


def _name(number: int, fault: Fault) -> str:
    return str(fault.get("name", f"{number}-{fault['do']}-{fault.get('on', '*')}"))
