"""Settings of hypothesis: what a test promises does not hang on how busy the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# By default an example fails that takes 200 ms, and a test whose first examples take a second.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")
