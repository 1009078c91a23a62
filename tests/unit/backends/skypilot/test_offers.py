"""SkyPilot's offers, read from its rows."""

from __future__ import annotations

from jobs.backends.skypilot.offers import gpu_of


def test_gpus_of_a_cluster_that_does_not_report_what_is_free_are_listed_all_the_same():
    row = {"infra": "kubernetes/shared", "node": "a", "gpu": "H100", "total": 8, "free": None}
    assert (gpu_of(row).total, gpu_of(row).free) == (8, 0)
