"""The rig by itself: nodes with addresses of their own, that can be killed and come back."""

from __future__ import annotations

from tests.cluster.rig.machine import Rig
from tests.cluster.rig.spaces import run


def test_every_node_is_idle_and_counts_eight_gpus(rig: Rig) -> None:
    assert rig.states() == dict.fromkeys(rig.nodes, "idle")
    listed = run("sinfo", "-h", "-N", "-p", "spare", "-o", "%N %G").splitlines()
    assert sorted(listed) == [f"{node} gpu:H100:8" for node in sorted(rig.nodes)]


def test_a_node_has_its_own_name_address_and_a_python_with_monarch(rig: Rig) -> None:
    asks = "hostname -I; python3 -c 'import monarch; print(monarch.__name__)'"
    said = run("srun", "-w", "rig-3", "bash", "-lc", f"hostname; {asks}").split()
    assert said == ["rig-3", rig.addresses["rig-3"], "monarch"]
