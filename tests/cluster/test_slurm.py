"""The rig by itself: nodes with addresses of their own, that can be killed and come back."""

from __future__ import annotations

import http.server
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from tests.cluster.rig.machine import Rig
from tests.cluster.rig.spaces import run
from tests.waiting import eventually

SLURMD_PORT = 6818


def on(node: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` on a node, outside of any cluster of SkyPilot's."""
    argv = ["srun", "-w", node, "bash", "-lc", command]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def port() -> Iterator[int]:
    """Start a web server on 127.0.0.1, in the role of a portal."""
    handler = http.server.SimpleHTTPRequestHandler
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_every_node_is_idle_and_counts_eight_gpus_in_both_partitions(rig: Rig) -> None:
    assert eventually(lambda: rig.states() == dict.fromkeys(rig.nodes, "idle"))
    for partition in ("main", "spare"):
        listed = run("sinfo", "-h", "-N", "-p", partition, "-o", "%N %G").splitlines()
        assert sorted(listed) == [f"{node} gpu:H100:8" for node in sorted(rig.nodes)]


def test_a_node_has_its_own_name_address_and_processes_and_a_python_with_monarch(rig: Rig) -> None:
    asks = "hostname; hostname -I; python3 -c 'import monarch; print(monarch.__name__)'"
    assert on("rig-3", asks).stdout.split() == ["rig-3", rig.addresses["rig-3"], "monarch"]
    assert on("rig-3", "pgrep -c -x slurmd").stdout.strip() == "1"


def test_a_node_that_is_killed_is_missed_and_comes_back(rig: Rig) -> None:
    rig.kill_node("rig-4")
    with pytest.raises(OSError):
        socket.create_connection((rig.addresses["rig-4"], SLURMD_PORT), timeout=5)
    assert eventually(lambda: rig.states()["rig-4"] == "down*", timeout_s=60)
    rig.revive_node("rig-4")
    assert on("rig-4", "hostname").stdout == "rig-4\n"
    assert eventually(lambda: rig.states()["rig-4"] == "idle")


def test_nodes_reach_a_port_of_this_side_only_while_it_is_forwarded(rig: Rig, port: int) -> None:
    with rig.way_to(port) as way:
        assert on("rig-1", f"curl -sS --max-time 5 {way.url}").returncode == 0
        with way.closed():
            assert on("rig-1", f"curl -sS --max-time 5 {way.url}").returncode
        assert on("rig-1", f"curl -sS --max-time 5 {way.url}").returncode == 0
    assert on("rig-1", f"curl -sS --max-time 5 {way.url}").returncode
    assert on("rig-1", f"curl -sS --max-time 5 http://{rig.login.host}:{port}").returncode


def test_the_login_node_opens_with_its_key(rig: Rig) -> None:
    assert rig.login.run("hostname").strip() == "rig-login"
