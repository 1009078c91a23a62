"""SkyPilot's refusals as errors of the backend."""

from __future__ import annotations

from jobs.backends.skypilot.views import error_of
from jobs.errors import NoCapacityError
from monarch_client.skypilot.errors import SkyPilotError


def test_a_lack_of_capacity_names_the_locations_that_were_tried():
    reasons = [f"us-east-{number}: 8 nodes wanted, 6 free." for number in range(5)]
    error = error_of(SkyPilotError("no_capacity", "Failed to provision.", {"reasons": reasons}))
    assert isinstance(error, NoCapacityError)
    assert error.message == f"Failed to provision. {' '.join(reasons[:3])} And 2 more."
    assert error_of(SkyPilotError("no_capacity", "Full.")).message == "Full."
