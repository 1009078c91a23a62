"""The hosts of a node, by its accelerator."""

from __future__ import annotations

from monarch_client.spec.tpu import hosts_of_node
from tests.each_case import check_each


def test_a_slice_has_several_hosts_and_any_other_node_has_one():
    def check(accelerator: str, hosts: int) -> None:
        assert hosts_of_node(accelerator) == hosts

    check_each(
        [
            ("TPU-V4-32", 4),
            ("tpu-v5litepod-16", 4),
            ("tpu-v6e-8", 1),
            ("tpu-v4-8", 1),
            ("tpu-of-a-later-kind", 1),
            ("H100", 1),
            ("v4-32", 1),
            ("", 1),
        ],
        check,
    )
