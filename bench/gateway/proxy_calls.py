"""The time of a call on a mesh proxy, through a portal, beside the same call on native Monarch.

`make bench NAME=gateway.proxy_calls`. What the figure means is in bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import own_portal
from bench.gateway import proxy_probe
from bench.measure import Peer, figures, median, report, say
from monarch_client.gateway import connect
from monarch_client.sync.archive import pack

LIMIT_S = 180.0
SPEC: dict[str, Any] = {
    "num_nodes": 2,
    "resources": {"infra": "local"},
    "portal": {"meshes": {"hosts": 2}},
}


def native(portal: own_portal.OwnPortal, workdir: str) -> list[float]:
    """Return the milliseconds of each call that the driver of a job makes."""
    run = f"{sys.executable} proxy_probe.py"
    spec = {**SPEC, "name": "native", "workdir": workdir, "run": run}
    job = portal.client.submit(portal.project, spec)
    wait_for(lambda: portal.client.job(portal.project, job.id).is_final)
    lines = portal.client.logs(portal.project, job.id, before="end", limit=100).results
    for line in lines:
        word, _, text = line.text.partition(" ")
        if word == proxy_probe.RESULT:
            found: list[float] = json.loads(text)
            return found
    raise RuntimeError("\n".join(["the driver has no result:", *(line.text for line in lines)]))


def proxied(portal: own_portal.OwnPortal, workdir: str) -> list[float]:
    """Return the milliseconds of each call of a program with proxies."""
    spec = {**SPEC, "name": "attached", "workdir": workdir}
    spec["portal"] = {**spec["portal"], "gateway": True}
    job = portal.client.submit(portal.project, spec)
    wait_for(lambda: portal.client.job(portal.project, job.id).status == "RUNNING")
    os.environ["MPORTAL_URL"] = portal.home.url
    os.environ["MPORTAL_TOKEN"] = portal.home.admin_token_file.read_text().strip()
    with connect(f"{portal.project}/{job.id}", proxy=True) as meshes:
        found = proxy_probe.calls_ms(meshes.hosts, "echoes:Echo")
    portal.client.cancel(portal.project, job.id)
    wait_for(lambda: portal.client.job(portal.project, job.id).is_final)
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true. TimeoutError: it did not become so."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def main() -> None:
    """Measure native first and last, and proxies between both."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with figures(), own_portal.running() as portal, tempfile.TemporaryDirectory() as folder:
        code = Path(folder, "code")
        code.mkdir()
        for name in ("proxy_probe.py", "echoes.py"):
            (code / name).write_text(Path(__file__).with_name(name).read_text())
        packed = pack(code, Path(folder, "code.tar.gz"))
        portal.client.upload(portal.project, packed.path)
        first = native(portal, packed.reference)
        ours = proxied(portal, packed.reference)
        last = native(portal, packed.reference)
        say(f"least times: {min(ours):.2f} ms, native {min(*first, *last):.2f} ms")
        peer = Peer("the same call in the job's driver", median([*first, *last]))
        report("proxy_call_ms", median(ours), "ms", peer=peer, spread=(min(ours), max(ours)))


if __name__ == "__main__":
    main()
