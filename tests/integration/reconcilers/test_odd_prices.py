"""Prices of any size are kept, and one that cannot be stored blocks no other price."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.backends.base import Plan
from jobs.models import Cluster, ExpectedPrice
from jobs.reconcilers import prices
from tests.factories import make_user
from tests.integration.api.conftest import caller_for
from tests.integration.reconcilers.test_money_quotas import limit, no_hints, queued, root, why
from tests.integration.reconcilers.test_quotas_hold import there

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("fake", "no_hints"),
    pytest.mark.feature("P5.1"),
]
__all__ = ["no_hints", "root"]


def test_a_million_dollars_an_hour_is_a_price_too(fake, root, project):
    fake.set_price("1139000.00")
    limit(root, project, 1_000_000)
    job = queued(project, 3)
    prices.step()
    left = "$1,000,000.00 of $1,000,000.00 is left in project rl."
    assert why(job) == f"Needs $3,417,000.00 an hour; {left}"
    Cluster.objects.create(
        project=project,
        name="mp-1",
        backend_name="fake",
        num_nodes=3,
        usd_per_hour="3417000.00",
        usd="9999999999.50",
    )
    (row,) = caller_for(make_user(is_superuser=True)).get("/projects/rl/clusters").json()["results"]
    assert (row["usd_per_hour"], row["usd"]) == ("3417000.000000", "9999999999.500000")


@pytest.mark.parametrize("odd", ["1e30", "NaN", "Infinity"])
def test_a_price_that_cannot_be_stored_keeps_no_other_job_from_its_price(
    fake, root, project, monkeypatch, odd
):
    limit(root, project, 10)
    jobs = [queued(project, nodes) for nodes in (1, 2, 3)]
    usual = type(fake).plan

    def plan(self: Any, spec: dict[str, Any]) -> Plan:
        self.set_price(odd if spec["num_nodes"] == 2 else "1.00")
        return usual(self, spec)

    monkeypatch.setattr(type(fake), "plan", plan)
    prices.step()
    reported = why(jobs[1])
    assert set(there()) == {jobs[0], jobs[2]}
    assert reported.startswith(
        "Its price, which a quota counts, is being requested again. "
        "The portal failed to store the price "
    )
    assert ExpectedPrice.objects.filter(ask_again_at__gt=jobs[1].created_at).count() == 3
