"""`portal.driver: parent`: jobs without a program, whose workers serve another job's driver."""

from __future__ import annotations

from typing import Any

import pytest

from monarch_client.spec import JobSpec
from tests.each_case import check_each
from tests.unit.spec.specs import errors_of

pytestmark = pytest.mark.feature("S1.5")
BLOCK: dict[str, Any] = {"driver": "parent", "meshes": {"generators": 2}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"run": "python train.py", "portal": BLOCK}, "run"),
    ({"portal": {"driver": "parent"}}, "portal.driver"),
    ({"portal": {**BLOCK, "detached": True}}, "portal.detached"),
    ({"portal": {**BLOCK, "preemptible": True}}, "portal.preemptible"),
    ({"portal": {**BLOCK, "array": {"lr": [1, 2]}}}, "portal.array"),
]


def test_it_has_meshes_and_no_run_and_stays_so_when_it_is_stored() -> None:
    spec = JobSpec.parse({"name": "generators", "portal": BLOCK})
    assert (spec.run, spec.num_nodes, spec.serves_parent) == ("", 2, True)
    assert JobSpec.parse(spec.to_dict()) == spec == JobSpec.from_dict(spec.to_dict())


def test_keys_that_do_not_go_with_it_are_named() -> None:
    def check(source: dict[str, Any], path: str) -> None:
        [error] = errors_of(source)
        assert (error.path, error.code) == (path, "conflict")

    check_each(REFUSED, check)


def test_a_job_with_a_driver_of_its_own_needs_run() -> None:
    [error] = errors_of({"portal": {"meshes": {"generators": 2}}})
    assert (error.path, error.code) == ("run", "missing")


def test_what_it_does_not_name_comes_from_the_parent() -> None:
    parent = JobSpec.parse(
        {
            "run": "python train.py",
            "workdir": {"url": "https://example.org/code.git"},
            "secrets": ["HUB_TOKEN"],
            "resources": {"accelerators": "H100:8", "infra": "slurm/main"},
            "portal": {"queue": "night", "meshes": {"trainers": 1}},
        }
    )
    child = JobSpec.parse({"resources": {"accelerators": "L4:1"}, "portal": BLOCK})
    found = child.completed_from(parent)
    assert (found.workdir, found.secrets) == (parent.workdir, parent.secrets)
    assert found.resources == {"accelerators": "L4:1", "infra": "slurm/main"}
    assert (found.portal.queue, found.portal.meshes) == ("night", {"generators": 2})
    assert (parent.portal.port, found.portal.port) == (22222, 22225)
    elsewhere = JobSpec.parse({"resources": {"infra": "aws"}, "portal": BLOCK})
    assert elsewhere.completed_from(parent).resources == {"infra": "aws"}


def test_children_on_the_node_of_their_parent_have_ports_of_their_own() -> None:
    child = JobSpec.parse({"portal": BLOCK})
    for parents_port in (22222, 64999):
        parent = JobSpec.parse({"run": "x", "portal": {"meshes": {"a": 1}, "port": parents_port}})
        ports = [child.completed_from(parent, earlier).portal.port for earlier in range(100)]
        used = {port + more for port in (parents_port, *ports) for more in range(3)}
        assert len(used) == 3 * 101
        assert max(ports) <= 65000
    named = JobSpec.parse({"portal": {**BLOCK, "port": 30000}})
    assert named.completed_from(parent, 7).portal.port == 30000
