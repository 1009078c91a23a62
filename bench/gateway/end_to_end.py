"""The price of the way through the portal: calls, large arguments, and the time to be back.

`make bench NAME=gateway.end_to_end`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench import own_portal
from bench.gateway import probe
from bench.measure import Peer, figures, median, report, say
from tests.cuttable_relay import CuttableRelay

LIMIT_S = 180.0
CUT_S, CUTS = 10.0, 3
SPEC: dict[str, Any] = {
    "num_nodes": 2,
    "resources": {"infra": "local"},
    "portal": {"meshes": {"hosts": 2}},
}


def native(portal: own_portal.OwnPortal) -> dict[str, Any]:
    """Measure in the driver of a job."""
    text = Path(probe.__file__).read_text()
    run = f"cat > probe.py <<'PROBE'\n{text}\nPROBE\n{sys.executable} probe.py native"
    job = portal.client.submit(portal.project, {**SPEC, "name": "native", "run": run})
    wait_for(lambda: portal.client.job(portal.project, job.id).is_final)
    lines = portal.client.logs(portal.project, job.id, before="end", limit=100).results
    return result_in([line.text for line in lines])


def result_in(lines: list[str]) -> dict[str, Any]:
    """Return the result of a probe. RuntimeError: it has printed none."""
    for line in lines:
        word, _, text = line.partition(" ")
        if word == probe.RESULT:
            found: dict[str, Any] = json.loads(text)
            return found
    raise RuntimeError("\n".join(["the probe has no result:", *lines]))


@contextmanager
def workers(portal: own_portal.OwnPortal) -> Iterator[int]:
    """Start a job without a driver; yield its number."""
    spec = {**SPEC, "name": "attached"}
    spec["portal"] = {**spec["portal"], "gateway": True, "idle": {"minutes": 30}}
    job = portal.client.submit(portal.project, spec)
    wait_for(lambda: portal.client.job(portal.project, job.id).status == "RUNNING")
    yield job.id
    portal.client.cancel(portal.project, job.id)
    wait_for(lambda: portal.client.job(portal.project, job.id).is_final)


def start_attached(
    portal: own_portal.OwnPortal, job: int, mode: str, url: str, output: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start the probe outside of the job."""
    token = portal.home.admin_token_file.read_text().strip()
    account = {"MPORTAL_URL": url, "MPORTAL_TOKEN": token}
    job_of_program = {"MPORTAL_ATTACH": f"{portal.project}/{job}"}
    return subprocess.Popen(
        [sys.executable, probe.__file__, mode],
        env={**os.environ, **account, **job_of_program},
        stdout=output,
    )


def attached(portal: own_portal.OwnPortal, job: int) -> dict[str, Any]:
    """Measure in a program that is attached through the portal."""
    with tempfile.TemporaryFile() as output:
        start_attached(portal, job, "gateway", portal.home.url, output).wait(LIMIT_S)
        output.seek(0)
        return result_in(output.read().decode().splitlines())


def reattach_times(portal: own_portal.OwnPortal, job: int) -> list[float]:
    """Return the seconds from the return of the network to the next answered call."""
    listener = socket.create_server(("127.0.0.1", 0))
    relay = CuttableRelay(listener, int(portal.home.url.rpartition(":")[2]))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with tempfile.NamedTemporaryFile() as output:
        program = start_attached(portal, job, "steady", url, output.file)
        try:
            return [after_cut(relay, Path(output.name)) for _ in range(CUTS)]
        finally:
            program.kill()
            program.wait()
            relay.close()


def after_cut(relay: CuttableRelay, output: Path) -> float:
    """Cut the network for a while; return the seconds from its return to the next answer."""

    def answers_since(moment: float) -> list[float]:
        lines = [line.split() for line in output.read_text().splitlines()]
        return [float(line[1]) for line in lines if len(line) == 2 and float(line[1]) > moment]

    wait_for(lambda: bool(answers_since(time.monotonic() - 0.5)))
    relay.cut()
    time.sleep(CUT_S)
    relay.restore()
    restored = time.monotonic()
    wait_for(lambda: bool(answers_since(restored)))
    return answers_since(restored)[0] - restored


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true. TimeoutError: it did not become so."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def main() -> None:
    """Measure native first and last, and the way through the portal between both."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with figures(), own_portal.running() as portal:
        first = native(portal)
        with workers(portal) as job:
            ours = attached(portal, job)
            times = reattach_times(portal, job)
        last = native(portal)
        report_calls(first, ours, last)
        rate = probe.LARGE_BYTES / 1e6
        peer = Peer("native Monarch, MB/s", rate / min(first["large_s"], last["large_s"]))
        report("gateway_bandwidth_mb_s", rate / ours["large_s"], "MB/s", peer=peer)
        longest = Peer("Monarch's own longest pause before it dials again", 5.0)
        report("reattach_s", median(times), "s", peer=longest, spread=(min(times), max(times)))


def report_calls(first: dict[str, Any], ours: dict[str, Any], last: dict[str, Any]) -> None:
    """Report what the way adds to a call: medians, and the least times as a remark."""
    for place in ("head", "elsewhere"):
        key = f"{place}_ms"
        bare = median([*first[key], *last[key]])
        least = min(ours[key]) - min(*first[key], *last[key])
        say(f"{place}: least times differ by {least:.2f} ms")
        figure = "gateway_call_added_ms" + ("" if place == "head" else "_elsewhere")
        peer = Peer("the same call, native", bare)
        report(figure, median(ours[key]) - bare, "ms", peer=peer)


if __name__ == "__main__":
    main()
