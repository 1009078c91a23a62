"""The folders and files whose tests start portals, runners or workers, or try many random examples.

`make slow` runs them, and `make test` does not. A single test carries the mark `slow` itself.
"""

from __future__ import annotations

SLOW = (
    "tests/acceptance",
    "tests/integration/attaching",
    "tests/integration/backends/test_contract.py",
    "tests/integration/backends/test_keepers.py",
    "tests/integration/backends/local/test_backend.py",
    "tests/integration/backends/local/test_held_locks.py",
    "tests/integration/backends/local/test_isolation.py",
    "tests/integration/backends/local/test_monarch.py",
    "tests/integration/backends/skypilot/test_backend.py",
    "tests/integration/backends/skypilot/test_ends.py",
    "tests/integration/backends/skypilot/test_machines.py",
    "tests/integration/embedded/test_postgres.py",
    "tests/integration/gateway/proxies",
    "tests/integration/gateway_programs",
    "tests/integration/gateway/remote",
    "tests/integration/hostile/test_stream_floods.py",
    "tests/integration/logs/test_concurrency.py",
    "tests/integration/logs/test_moving.py",
    "tests/integration/logs/test_s3.py",
    "tests/integration/reconcilers/test_quotas_hold.py",
    "tests/integration/runner",
    "tests/integration/sky_stub",
    "tests/integration/web/test_sub_path.py",
    "tests/integration/skypilot_job",
    "tests/unit/context/test_models.py",
    "tests/unit/runner/code_sync/test_switching.py",
    "tests/unit/scheduling/test_properties.py",
    "tests/unit/scheduling/test_two_plans.py",
    "tests/unit/scheduling/test_warm_properties.py",
    "tests/unit/scheduling/test_worlds.py",
    "tests/unit/sync/test_git_rules.py",
)
