"""Trees that are too large for one frame, and the parts of them that are reported."""

from __future__ import annotations

import json
from typing import Any

from monarch_client.runner.mesh.sizes import fitting
from monarch_client.runner.vocabulary.frames import state_line
from tests.mesh_frames import dead, host, proc, tree


def encode(content: dict[str, Any]) -> bytes:
    return state_line(0, "mesh", content)


def test_what_does_not_fit_is_counted_and_losses_stay() -> None:
    hosts = [host(rank, procs=[proc(f"p<{n}>") for n in range(8)]) for rank in range(300)]
    hosts[7]["procs"].append(dead())
    whole = {"answers": True, "why": "", "left_out": 0, "hosts": hosts}
    for most in (200_000, 50_000, 5_000):
        line = fitting(whole, encode, most)
        assert len(line) <= most
        reported = json.loads(line)
        procs = [each for reported_host in reported["hosts"] for each in reported_host["procs"]]
        assert [each["state"] for each in procs].count("dead") == 1
        left_out = sum(reported_host["left_out"] for reported_host in reported["hosts"])
        if not reported["left_out"]:
            assert len(procs) + left_out == 300 * 8 + 1
        assert len(reported["hosts"]) + reported["left_out"] == 300


def test_where_not_all_fits_losses_come_before_the_unknown() -> None:
    lost = host(3, state="unreachable", procs=[proc(f"p<{n}>", state="unknown") for n in range(99)])
    many = [host(rank, procs=[proc(state="unknown"), dead()]) for rank in range(4, 9)]
    reported = json.loads(
        fitting({"answers": True, "why": "", "left_out": 0, "hosts": [lost, *many]}, encode, 5000)
    )
    assert reported["left_out"] == 0
    assert [each["state"] for each in reported["hosts"]] == ["unreachable", *["up"] * 5]
    assert reported["hosts"][0]["left_out"] == 99
    assert [each["procs"][0]["state"] for each in reported["hosts"][1:]] == ["dead"] * 5


def test_nothing_is_left_out_of_what_fits() -> None:
    whole = {"answers": True, "why": "", "left_out": 0, "hosts": tree(0)["hosts"]}
    assert json.loads(fitting(whole, encode))["hosts"] == whole["hosts"]
