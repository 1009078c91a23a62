"""The product packages that a test exercises without importing them.

When a change touches one of these packages, `.ci/run` runs the test. No entry is needed for a
package that the test's file imports, or that its path mirrors (`tests/integration/backends` mirrors
`jobs/backends`). A path includes everything below it; `jobs/*` is the modules of `jobs` itself.
"""

from __future__ import annotations

WATCHES: dict[str, tuple[str, ...]] = {
    "tests/acceptance/test_child_jobs.py": ("monarch_client/rest",),
    "tests/acceptance/test_cli.py": ("monarch_client/cli", "monarch_client/rest"),
    "tests/acceptance/test_compose_commands.py": ("jobs/gateway", "jobs/management"),
    "tests/acceptance/test_dags.py": ("jobs/reconcilers",),
    "tests/acceptance/test_demo.py": ("monarch_portal/embedded",),
    "tests/acceptance/test_diagnosis.py": ("jobs/policies",),
    "tests/acceptance/test_documents.py": ("monarch_client/spec",),
    "tests/acceptance/test_from_a_laptop.py": (
        "jobs/gateway",
        "monarch_client/gateway",
        "monarch_client/runner",
    ),
    "tests/acceptance/test_gateway.py": ("jobs/gateway", "monarch_client/runner/gateway"),
    "tests/acceptance/test_gpu_idle.py": ("jobs/reconcilers",),
    "tests/acceptance/test_jobs.py": ("jobs/backends", "monarch_client/runner"),
    "tests/acceptance/test_kill_everything.py": ("jobs/reconcilers", "monarch_portal/embedded"),
    "tests/acceptance/test_log_policies.py": ("jobs/policies",),
    "tests/acceptance/test_logs_on_s3.py": ("jobs/logs",),
    "tests/acceptance/test_mesh.py": ("monarch_client/runner",),
    "tests/acceptance/test_metrics.py": ("monarch_client/runner",),
    "tests/acceptance/test_portal_process.py": ("monarch_portal/*", "monarch_portal/embedded"),
    "tests/acceptance/test_preemption.py": ("jobs/scheduling",),
    "tests/acceptance/test_remote_job.py": ("monarch_client/gateway",),
    "tests/acceptance/test_schedules.py": ("jobs/reconcilers",),
    "tests/acceptance/test_secrets.py": ("jobs/logs",),
    "tests/acceptance/test_stacks.py": ("monarch_client/runner",),
    "tests/acceptance/test_templates.py": ("jobs/templating", "monarch_client/spec"),
    "tests/browser": ("jobs/static", "jobs/web", "templates"),
    "tests/cluster": ("monarch_client/skypilot",),
    "tests/cluster/test_portal_losses.py": ("jobs/reconcilers",),
    "tests/faults/model": ("jobs/actions", "jobs/reconcilers"),
    "tests/faults/sky": ("jobs/backends", "jobs/follower"),
    "tests/faults/test_context_hosts.py": ("monarch_client/context",),
    "tests/faults/test_crash_matrix_end.py": ("jobs/*", "jobs/reconcilers"),
    "tests/faults/test_crash_matrix_run.py": ("monarch_client/runner",),
    "tests/faults/test_crash_matrix_start.py": ("jobs/*", "jobs/reconcilers"),
    "tests/faults/test_crash_matrix_stop.py": ("jobs/*", "jobs/reconcilers"),
    "tests/faults/test_cut_connections.py": ("monarch_client/runner",),
    "tests/faults/test_disk_full.py": ("jobs/logs",),
    "tests/faults/test_gateway_ways.py": (
        "jobs/gateway",
        "monarch_client/gateway",
        "monarch_client/runner/gateway",
        "monarch_client/runner/scripts",
    ),
    "tests/faults/test_held_locks.py": ("jobs/backends",),
    "tests/faults/test_log_faults.py": ("jobs/logs", "monarch_client/runner"),
    "tests/faults/test_several_of_each.py": ("jobs/gateway", "jobs/reconcilers"),
    "tests/faults/test_tunnel_cuts.py": ("monarch_client/attaching", "monarch_client/skypilot"),
    "tests/faults/test_unruly_broker.py": ("jobs/live",),
    "tests/faults/test_worker_credit.py": ("jobs/live",),
    "tests/integration/attaching": ("monarch_client/attaching", "monarch_client/skypilot"),
    "tests/integration/gateway/remote": ("monarch_client/attaching", "monarch_client/gateway"),
    "tests/integration/sky_stub": ("jobs/backends",),
    "tests/integration/skypilot_job": ("monarch_client/skypilot",),
}
