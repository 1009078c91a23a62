"""SkyPilot's offers, read from its rows."""

from __future__ import annotations

from jobs.backends.skypilot.offers import candidate_of, gpu_of


def test_gpus_of_a_cluster_that_does_not_report_what_is_free_are_listed_all_the_same():
    row = {"infra": "kubernetes/shared", "node": "a", "gpu": "H100", "total": 8, "free": None}
    assert (gpu_of(row).total, gpu_of(row).free) == (8, 0)


def test_a_candidate_names_its_gpus_and_amounts_as_a_specification_does():
    row = {"infra": "aws/us-east-1", "instance_type": "p5.48xlarge", "usd_per_hour": 24.4}
    row |= {"cpus": 192.0, "memory": "2048+", "accelerators": {"H100": 8.0}}
    found = candidate_of(row)
    assert (found.accelerators, found.cpus, found.memory) == ("H100:8", "192", "2048+")
    assert candidate_of({"infra": "aws", "usd_per_hour": 1}).accelerators == ""
