"""The report of a portal's clouds: which are usable, why others are not, which GPUs are free."""

from __future__ import annotations

import json
import stat
from typing import Any

import pytest

from tests.cluster.portal import PortalOnRig
from tests.cluster.rig.machine import Rig
from tests.waiting import eventually


@pytest.mark.feature("P9.3")
def test_a_slurm_cluster_that_was_added_is_checked_by_skypilot_and_kept_private(
    portal: PortalOnRig,
) -> None:
    done = portal.mportal("admin", "cloud", "check", "-o", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    states = {row["name"].lower(): row for row in json.loads(done.stdout)}
    assert states["slurm"]["is_enabled"], states["slurm"]
    files = [path for path in (portal.home.skypilot.home / ".slurm").rglob("*") if path.is_file()]
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_places_show_what_is_enabled_why_others_are_not_and_gpus_that_are_free(
    rig: Rig, portal: PortalOnRig
) -> None:
    found: dict[str, Any] = {}

    def is_reported() -> bool:
        with portal.client() as client:
            backends = client.get("/api/v1/infra").json()["results"]
        found.update(next(row for row in backends if row["backend"] == "skypilot"))
        return bool(found["clouds"] and found["gpus"])

    assert eventually(is_reported, timeout_s=120), found
    clouds = {row["name"].lower(): row for row in found["clouds"]}
    assert clouds["slurm"]["is_enabled"]
    assert not clouds["aws"]["is_enabled"]
    assert clouds["aws"]["reason"]
    assert {row["gpu"] for row in found["gpus"]} == {"H100"}
    assert all(0 <= row["free"] <= row["total"] for row in found["gpus"])
    assert max(row["total"] for row in found["gpus"]) == 8 * len(rig.nodes)
