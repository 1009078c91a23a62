"""The size of a submission, in a few words."""

from __future__ import annotations

from monarch_client.spec import JobSpec
from monarch_client.spec.summary import summary_of
from tests.each_case import check_each

ARRAY = "portal: {array: {lr: [1, 2, 3], seed: [1, 2, 3, 4]}"


def test_a_summary_has_the_nodes_the_meshes_and_the_array() -> None:
    cases = [
        ("", "1 node"),
        ("num_nodes: 3", "3 nodes"),
        ("portal: {meshes: {a: 2, b: 1}}", "3 nodes, Monarch job, meshes: a 2, b 1"),
        (f"{ARRAY}, max_parallel: 4}}", "1 node, array of 12 jobs, 4 at a time"),
        (f"{ARRAY}, max_parallel: 12}}", "1 node, array of 12 jobs"),
    ]

    def check(text: str, expected: str) -> None:
        assert summary_of([JobSpec.parse(f"run: echo\n{text}\n")]) == expected

    check_each(cases, check)


def test_several_specifications_are_counted_by_their_jobs() -> None:
    specs = [JobSpec.parse("run: echo\n"), JobSpec.parse(f"run: echo\n{ARRAY}}}\n")]
    assert summary_of(specs) == "13 jobs of 2 specifications"
