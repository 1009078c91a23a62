"""The specifications of jobs that a context submits to a portal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from monarch_client.context.cluster import host_call
from monarch_client.context.cluster.scripts import run_script, setup_script
from monarch_client.context.cluster.tpu import TpuRunConfig
from monarch_client.context.options import Resource, RuntimeEnv

_PACKAGES = '"$PWD/.context-packages"'
_GIGABYTE = 2**30
# The most that a specification permits.
_MAX_ATTEMPTS, _MAX_RECOVERIES = 100, 1000
# SkyPilot needs the type of a GPU.
_UNTYPED = ("GPU", "TPU")


def script_spec(
    entrypoint: str, env: RuntimeEnv, resources: Mapping[str, Any], num_nodes: int
) -> dict[str, Any]:
    """Return the specification of a shell script."""
    spec: dict[str, Any] = {
        "name": "context-job",
        "num_nodes": num_nodes,
        "run": run_script(entrypoint, env, _PACKAGES),
        "envs": dict(env.env),
        "resources": {**resources, **_required(env.minimum_resources)},
    }
    if setup := setup_script(env, _PACKAGES):
        spec["setup"] = setup
    return spec


def tpu_spec(
    workdir: str, config: TpuRunConfig, env: RuntimeEnv, resources: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the specification of a call on TPU slices: a node for SkyPilot is one slice.

    A failure of the hosts or of a process is retried; an error of the function is not.
    """
    program = f"python3 -m {host_call.__name__}"
    spec = script_spec(program, env, resources, config.num_slices)
    return {
        **spec,
        "name": "context-tpu",
        "workdir": workdir,
        "resources": {**spec["resources"], "accelerators": f"{config.accelerator}:1"},
        "portal": {
            "retry": {
                "max_attempts": min(1 + config.max_retries_failure, _MAX_ATTEMPTS),
                "max_recoveries": min(config.max_retries_preemption, _MAX_RECOVERIES),
            },
            "log_policies": [
                {
                    "name": "function_failed",
                    "pattern": f"^{host_call.ERROR} ",
                    "actions": ["no_retry"],
                }
            ],
        },
    }


def _required(minimum: tuple[Resource, ...] | Any) -> dict[str, Any]:
    """Return SkyPilot's keys for the least resources of a job."""
    keys: dict[str, Any] = {}
    for each in minimum:
        if each.name.upper() == "CPU":
            keys["cpus"] = f"{math.ceil(each.quantity)}+"
        elif each.name.lower() == "memory":
            keys["memory"] = f"{math.ceil(each.quantity / _GIGABYTE)}+"
        elif each.name.upper() in _UNTYPED:
            raise ValueError(
                f"A job needs the type of its accelerators, such as Resource('H100', 8), and not "
                f"{each.name}"
            )
        else:
            keys["accelerators"] = f"{each.name}:{each.quantity:g}"
    return keys
