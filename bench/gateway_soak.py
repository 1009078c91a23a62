"""Disturb three laptops that are attached to one training, and count what it suffers.

`make bench NAME=gateway_soak`. What the figure means is in bench/README.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from bench import own_portal
from bench.measure import NoPeer, figures, report, say
from monarch_client.wire.jobs import Job
from monarch_portal.embedded.home import Home
from tests.faults.tcp_proxy import TcpProxy

LAPTOPS = 3
TIMES = 100
AWAY_S = 40.0
# A laptop whose calls do not go on for as long counts as disturbed: Monarch waits for 5 s at most
# between two tries to reconnect.
PATIENCE_S = 90.0
KINDS = ("cut", "kill", "away")
_ECHO = """
import itertools, sys, time
from monarch.actor import Actor, endpoint
class Echo(Actor):
    @endpoint
    def echo(self, number):
        return number
def call_for_ever(mesh):
    echo = mesh.spawn_procs(per_host={"procs": 1}).spawn("echo", Echo)
    for number in itertools.count():
        found = set(echo.echo.call(number).get(timeout=300).values())
        assert found == {number}, f"{found} instead of {number}"
        print(number, flush=True)
        time.sleep(0.05)
"""
LAPTOP = f"""{_ECHO}
from monarch_client.gateway import connect
with connect(int(sys.argv[1])) as meshes:
    call_for_ever(meshes.trainers)
"""
DRIVER = f"""{_ECHO}
from mportal_runtime import meshes
call_for_ever(meshes.trainers)
"""
SPEC = {
    "name": "training",
    "envs": {"DRIVER": DRIVER},
    "run": 'python -c "$DRIVER" | tail -n 1',
    "portal": {"meshes": {"trainers": 2}, "gateway": True},
}


class Laptop:
    """A program that calls actors without end, behind a network of its own."""

    def __init__(self, home: Home, job: Job, errors: IO[bytes]) -> None:
        target = urlsplit(home.url)
        self._target = (target.hostname or "127.0.0.1", target.port or 80)
        self._is_away = False
        self._proxy = TcpProxy(self._dial)
        self._environment = {
            **os.environ,
            "MPORTAL_URL": f"http://127.0.0.1:{self._proxy.port}",
            "MPORTAL_TOKEN": home.admin_token_file.read_text().strip(),
        }
        self._job = job
        self._errors = errors
        self._calls = itertools.count(1)
        self._made = 0
        self._changed = threading.Condition()
        self._start()

    def disturb(self, kind: str) -> float:
        """Cut or kill it; return the seconds until its calls go on. TimeoutError: they do not."""
        if kind == "kill":
            self.kill()
            self._start()
        else:
            self._is_away = True
            self._proxy.cut_all()
            time.sleep(AWAY_S if kind == "away" else random.uniform(0.1, 3))
            self._is_away = False
        began = time.monotonic()
        self.wait_for_calls()
        return time.monotonic() - began

    def wait_for_calls(self) -> None:
        """Wait until two more calls were answered: one may have been on its way back."""
        with self._changed:
            wanted = self._made + 2
            if not self._changed.wait_for(lambda: self._made >= wanted, PATIENCE_S):
                raise TimeoutError(f"no call was answered for {PATIENCE_S:g} s")

    def kill(self) -> None:
        """Send SIGKILL to the program and to its link process."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the program and its network."""
        self.kill()
        self._proxy.close()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAPTOP, str(self._job.id)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        threading.Thread(target=self._count, args=(self._process.stdout,), daemon=True).start()

    def _count(self, lines: IO[bytes]) -> None:
        for _ in lines:
            with self._changed:
                self._made = next(self._calls)
                self._changed.notify_all()

    def _dial(self) -> socket.socket:
        if self._is_away:
            raise ConnectionRefusedError
        return socket.create_connection(self._target, 5)


class Watch:
    """A record of what must not change: status, attempt and workers of the training."""

    def __init__(self, portal: own_portal.OwnPortal, job: Job) -> None:
        self._portal = portal
        self._job = job
        self._first = self._now()

    def change(self) -> str:
        """Return what is different from the beginning; "" if nothing is."""
        now = self._now()
        return "" if now == self._first else f"{self._first} became {now}"

    def _now(self) -> list[object]:
        portal, job = self._portal, self._job
        attempts = portal.client.attempts(portal.project, job.id)
        workers = [(each.rank, each.pid, each.status) for each in attempts[-1].workers]
        starts = [_started_at(pid) for _, pid, _ in workers if pid is not None]
        return [portal.client.job(portal.project, job.id).status, len(attempts), workers, starts]


def _started_at(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


class Soak:
    """The disturbances, each of a laptop that works again after the one before."""

    def __init__(self, laptops: list[Laptop], watch: Watch, times: int) -> None:
        self._laptops = laptops
        self._watch = watch
        # As many of each kind, in an order without a pattern.
        kinds = [KINDS[number % len(KINDS)] for number in range(times)]
        random.shuffle(kinds)
        self._kinds: Iterator[str] = iter(kinds)
        self._lock = threading.Lock()
        self.done = dict.fromkeys(KINDS, 0)
        self.faults: list[str] = []
        self.slowest = dict.fromkeys(KINDS, 0.0)

    def run(self) -> None:
        """Run the disturbances, those of each laptop on a thread."""
        threads = [threading.Thread(target=self._disturb, args=(each,)) for each in self._laptops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _disturb(self, laptop: Laptop) -> None:
        while (kind := self._next()) is not None:
            try:
                took_s = laptop.disturb(kind)
            except TimeoutError as error:
                self._note(kind, f"after {kind}: {error}")
                return
            self.slowest[kind] = max(self.slowest[kind], took_s)
            if change := self._watch.change():
                self._note(kind, f"after {kind}: {change}")
                return
            self._note(kind)

    def _next(self) -> str | None:
        with self._lock:
            return None if self.faults else next(self._kinds, None)

    def _note(self, kind: str, fault: str = "") -> None:
        with self._lock:
            self.done[kind] += 1
            if fault:
                self.faults.append(fault)
            count = sum(self.done.values())
        say(f"{count}: {kind} {fault or 'went by'}")


def main() -> None:
    """Parse the command line, disturb, and report the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES)
    options = parser.parse_args()
    # A killed program's session lasts until its limit.
    running = own_portal.running(MPORTAL_GATEWAY_PER_JOB="1000", MPORTAL_GATEWAY_PER_USER="1000")
    with figures(), running as portal, ExitStack() as ends:
        errors = ends.enter_context(tempfile.TemporaryFile())
        job = _started(portal)
        laptops = []
        for _ in range(LAPTOPS):
            laptops.append(Laptop(portal.home, job, errors))
            ends.callback(laptops[-1].close)
        for laptop in laptops:
            laptop.wait_for_calls()
        soak = Soak(laptops, Watch(portal, job), options.times)
        soak.run()
        say(f"done: {soak.done}; slowest, in seconds: {soak.slowest}")
        for fault in soak.faults:
            say(fault)
        if soak.faults:
            errors.seek(0)
            say(errors.read()[-4000:].decode("utf-8", "replace"))
        peer = NoPeer("the figure is to be 0")
        report("gateway_soak_faults", len(soak.faults), "faults", peer=peer)
        # Its runner would wait for a portal that has gone.
        portal.client.cancel(portal.project, job.id)
        _wait_for(portal, job, "CANCELLED")


def _started(portal: own_portal.OwnPortal) -> Job:
    """Submit the training in a project that allows laptops, and wait until it runs."""
    portal.client.allow_laptops(portal.project, allowed=True)
    job = portal.client.submit(portal.project, SPEC)
    _wait_for(portal, job, "RUNNING")
    return job


def _wait_for(portal: own_portal.OwnPortal, job: Job, status: str) -> None:
    """Wait until the job has a status. TimeoutError: it does not get it."""
    deadline = time.monotonic() + PATIENCE_S
    while portal.client.job(portal.project, job.id).status != status:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the training did not become {status}")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
