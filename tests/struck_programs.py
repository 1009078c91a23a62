"""Programs that a signal ends while they use a portal, each a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.programs import CHECKOUT

# `watched` is called at each look at the job; `client` is a client of a scripted portal.
PRELUDE = """
import os, signal
from tests.unit.rest.fake_portal import FakePortal, job_json, ok, page

def say(*words):
    print(*words, flush=True)

def watched(request):
    os.kill(os.getpid(), NUMBER)
    return ok(job_json(status="QUEUED"))(request)

def cancelled(request):
    os.kill(os.getpid(), signal.SIGINT)
    say("cancelled")
    return ok(job_json())(request)

portal = FakePortal()
portal.on("POST /projects/rl/jobs", ok(job_json(status="QUEUED")))
portal.on("GET /projects/rl/jobs/42", watched)
portal.on("POST /projects/rl/jobs/42/actions/cancel", cancelled)
client = portal.client()
"""
NUMBERS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def said_when_struck(program: str, number: signal.Signals) -> str:
    """Return what a program says that gets a signal while it waits, and SIGINT at its end."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE.replace("NUMBER", str(int(number))) + program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    assert done.returncode != 0, done.stderr
    return done.stdout.strip()
