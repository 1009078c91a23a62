"""A program without torchmonarch drives the meshes of a real job through the portal."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch_client.gateway import connect
from tests.acceptance.test_jobs import newest
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: driven
num_nodes: 2
workdir: {workdir}
portal: {{gateway: true, meshes: {{trainers: 2}}}}
"""
ACTORS = """
import os
from monarch.actor import Actor, endpoint
VERSION = 1
class Counter(Actor):
    def __init__(self):
        self.count = 0
    @endpoint
    async def add(self, number):
        self.count += number
        return self.count
    @endpoint
    async def version(self):
        return VERSION
    @endpoint
    async def pid(self):
        return os.getpid()
    @endpoint
    async def fail(self, key):
        return {}[key]
"""


@pytest.mark.feature("S1.2")
@pytest.mark.feature("S1.3")
@pytest.mark.monarch
@pytest.mark.timeout(400)
def test_proxies_drive_a_job_while_the_gateway_dies(
    own_portal: PortalProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_portal.start()
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "counters.py").write_text(ACTORS)
    file = tmp_path / "job.yaml"
    file.write_text(JOB.format(workdir=folder))
    submitted = own_portal.mportal("submit", "-f", str(file))
    assert submitted.returncode == 0, submitted.stderr
    is_running = lambda: newest(own_portal, "driven")["status"] == "RUNNING"  # noqa: E731
    assert eventually(is_running, timeout_s=180), own_portal.logs()
    monkeypatch.setenv("MPORTAL_URL", own_portal.url)
    monkeypatch.setenv("MPORTAL_TOKEN", own_portal.token)

    with connect("driven", proxy=True) as meshes:
        procs = meshes.trainers.spawn_procs(per_host={"procs": 1})
        counters = procs.spawn("counter", "counters:Counter")
        assert list(counters.add.call(2).get(timeout=60).values()) == [2, 2]
        with pytest.raises(KeyError, match="missing"):
            counters.fail.call("missing").get(timeout=60)
        own_portal.kill("gateway")
        assert list(counters.add.call(2).get(timeout=90).values()) == [4, 4]
        pid = counters.slice(hosts=1).pid.call_one().get(timeout=60)
        assert Path(f"/proc/{pid}").exists()
    assert eventually(lambda: not Path(f"/proc/{pid}").exists())

    # New code before a program is attached, and while it is.
    for version in (2, 3):
        (folder / "counters.py").write_text(ACTORS.replace("VERSION = 1", f"VERSION = {version}"))
        if version == 2:
            connection = connect("driven", proxy=True, sync=folder)
        else:
            assert connection.sync().changed == ("counters.py",)
        procs = connection.meshes.trainers.spawn_procs(per_host={"procs": 1})
        found = procs.spawn("counter", "counters:Counter").version.call().get(timeout=60)
        assert list(found.values()) == [version, version]
    connection.close()
    assert is_running()
