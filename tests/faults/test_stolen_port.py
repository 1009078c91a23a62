"""A job that takes the portal's port while the portal is down gets nothing by it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.faults.ground import JOBS
from tests.portal_process import PortalProcess
from tests.sky_stub.process import free_port
from tests.thief import A_STRANGER, Thief
from tests.waiting import eventually

pytestmark = pytest.mark.root("the thief has a user of its own")
# It reports when it is at work, and goes on once the portal has ended.
RUN = """
echo run
until (: > /dev/tcp/127.0.0.1/{go}) 2> /dev/null; do sleep 0.1; done
for i in $(seq 80); do echo line $i; done
"""


@pytest.fixture
def own_portal() -> Iterator[PortalProcess]:
    """Provide a portal of the test's own, not started yet."""
    process = PortalProcess()
    yield process
    process.close()


def test_a_thief_of_the_port_gets_no_token_and_no_line_and_nothing_runs_twice(own_portal, tmp_path):
    own_portal.start()
    go = free_port()
    spec = tmp_path / "job.json"
    spec.write_text(json.dumps({"name": "robbed", "run": RUN.format(go=go)}))
    output = own_portal.mportal("submit", "-f", str(spec), "-d", "-q").stdout
    job_id = int(re.findall(r"\d+", output)[0])
    assert eventually(lambda: texts_of(own_portal, job_id) == ["run"])
    port = urlsplit(own_portal.url).port
    own_portal.kill()

    with (
        Thief(port, tmp_path, uid=A_STRANGER) as thief,
        socket.create_server(("127.0.0.1", go)),
    ):
        # Often enough for a runner that believes it to have ended.
        assert eventually(lambda: thief.loot.count(b"GET /api/v1/proof") >= 3)
        refused = own_portal.run("start")
        assert refused.returncode != 0
        assert f"Port {port}, " in refused.stdout + refused.stderr
        assert f"process {thief.pid} of user {A_STRANGER}" in refused.stdout + refused.stderr
        whoami = own_portal.mportal("whoami")
        assert whoami.returncode != 0
        assert "not proved to be your portal" in whoami.stderr
    assert b"mpa_" not in thief.loot
    assert b"mpt_" not in thief.loot
    assert b"POST" not in thief.loot

    own_portal.start()
    own_portal.wait_until_ready()
    assert urlsplit(own_portal.url).port == port
    assert eventually(lambda: job_of(own_portal, job_id)["is_final"], timeout_s=60)
    ended = job_of(own_portal, job_id)
    assert (ended["status"], ended["exit_code"], ended["attempt"]) == ("SUCCEEDED", 0, 1)
    assert texts_of(own_portal, job_id) == ["run", *(f"line {i}" for i in range(1, 81))]


def job_of(portal: PortalProcess, job_id: int) -> dict[str, Any]:
    with portal.client() as client:
        found: dict[str, Any] = client.get(f"{JOBS}/{job_id}").json()
        return found


def texts_of(portal: PortalProcess, job_id: int) -> list[str]:
    with portal.client() as client:
        query = {"limit": 1000, "stream": "stdout"}
        rows = client.get(f"{JOBS}/{job_id}/logs", params=query).json()["results"]
    return [row["text"] for row in rows]
