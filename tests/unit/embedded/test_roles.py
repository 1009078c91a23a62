"""The supervisor's process before it forks: its threads, connections and modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import uvicorn

from monarch_portal.embedded import roles
from tests.portal_process import CHECKOUT

PROGRAM = """
import json, os, sys
import django
django.setup()
from monarch_portal.embedded import roles
roles.preload()
from django.db import connection
print(json.dumps({
    "threads": len(os.listdir("/proc/self/task")),
    "connected": connection.connection is not None,
    "modules": [name for name in ("monarch", "torch", "sky", "ray") if name in sys.modules],
}))
"""


def test_before_the_forks_there_is_no_thread_no_connection_and_no_monarch(tmp_path):
    environment = {
        "PATH": os.environ["PATH"],
        "MPORTAL_HOME": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "monarch_portal.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"threads": 1, "connected": False, "modules": []}


@pytest.mark.parametrize(("allowed", "believed"), [(None, False), ("", False), ("10.0.0.7", True)])
def test_web_believes_what_proxies_say_of_addresses_only_when_they_are_named(
    monkeypatch, allowed, believed
):
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    if allowed is not None:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", allowed)
    served: list[uvicorn.Config] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, **_: served.append(server.config))
    roles.web(None)
    assert [config.proxy_headers for config in served] == [believed]
    if believed:
        assert served[0].forwarded_allow_ips == allowed
