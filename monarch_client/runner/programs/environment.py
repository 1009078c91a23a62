"""The environment variables of users' programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.base.process_tree import NODE_MARK
from monarch_client.runner.programs import driver_plan
from monarch_client.runner.programs.hidden_values import revealed
from monarch_client.runner.vocabulary.limits import MAX_AWAY_S

if TYPE_CHECKING:
    from monarch_client.runner.base.config import AttemptConfig
    from monarch_client.runner.place import Place

# Settings of Monarch for fast reports of losses and for busy machines; `envs` override them. The
# limits on silence are Monarch's own: a process that is stopped or busy for long may be alive.
MONARCH_TUNING = {
    "HYPERACTOR_MESH_SUPERVISION_POLL_FREQUENCY": "1s",
    "HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE": "60s",
    "HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE": "30s",
    "HYPERACTOR_MESH_ORPHAN_TIMEOUT": "60s",
    "HYPERACTOR_HOST_SPAWN_READY_TIMEOUT": "300s",
    "HYPERACTOR_MESH_PROC_SPAWN_MAX_IDLE": "300s",
    "HYPERACTOR_MESH_ACTOR_SPAWN_MAX_IDLE": "300s",
    # Beyond what clients may be away, and the minute until a broken path is noticed.
    "HYPERACTOR_MESSAGE_DELIVERY_TIMEOUT": f"{MAX_AWAY_S + 120}s",
    "HYPERACTOR_MESH_ATTACH_CONFIG_TIMEOUT": "120s",
    # Ends wait for acknowledgements: with Monarch's 500 ms a driver's exit takes a second.
    "HYPERACTOR_MESSAGE_ACK_TIME_INTERVAL": "20ms",
}


def setup_environment(place: Place) -> dict[str, str]:
    """Return the environment of `setup`, for which SkyPilot has names of its own."""
    env = _base(place)
    env.update(
        SKYPILOT_SETUP_NODE_RANK=env["SKYPILOT_NODE_RANK"],
        SKYPILOT_SETUP_NODE_IPS=env["SKYPILOT_NODE_IPS"],
        SKYPILOT_SETUP_NUM_GPUS_PER_NODE=env["SKYPILOT_NUM_GPUS_PER_NODE"],
    )
    return env


def run_environment(place: Place) -> dict[str, str]:
    """Return the environment of `run` in a plain job."""
    return _base(place)


def monarch_environment(place: Place) -> dict[str, str]:
    """Return the environment of a worker or driver: that of `run`, with settings of Monarch."""
    config, folder = place.config, place.folder
    env = {**MONARCH_TUNING, **_base(place)}
    venv = _venv_of(place)
    if venv:
        env["VIRTUAL_ENV"] = venv
        env["PATH"] = os.pathsep.join(filter(None, [venv + "/bin", env.get("PATH", "")]))
    env.setdefault("MONARCH_LOG_SUFFIX", f"mportal_{config.attempt_id}_{place.rank}")
    if config.tls is not None:
        env.update(
            HYPERACTOR_TLS_CERT=str(folder.certificates / "leaf.crt"),
            HYPERACTOR_TLS_KEY=str(folder.certificates / "leaf.key"),
            HYPERACTOR_TLS_CA=str(folder.certificates / "ca.crt"),
        )
    return env


def shell_environment(place: Place) -> dict[str, str]:
    """Return the environment of a user's shell: that of the job, with its interpreter first."""
    env = monarch_environment(place) if place.config.is_monarch else run_environment(place)
    python = Path(python_of(place))
    if python.is_absolute():
        env["PATH"] = os.pathsep.join(filter(None, [str(python.parent), env.get("PATH", "")]))
    return env


def monarch_setting(config: AttemptConfig, name: str) -> str:
    """Return the value of a Monarch setting in the driver of an attempt."""
    return {**MONARCH_TUNING, **os.environ, **config.envs}[name]


def python_of(place: Place) -> str:
    """Return the interpreter of workers: the node's own, or that of their environment."""
    venv = _venv_of(place)
    return venv + "/bin/python" if venv else place.config.python


def _venv_of(place: Place) -> str:
    try:
        return place.folder.venv.read_text()
    except OSError:
        return ""


def driver_environment(place: Place) -> dict[str, str]:
    """Return the environment of the driver, with the files of `mportal_runtime`."""
    env = monarch_environment(place)
    # Without it `this_host()` before the first mesh would fix Monarch to Unix sockets.
    env.setdefault("HYPERACTOR_MESH_DEFAULT_TRANSPORT", driver_plan.transport_of(place.config))
    # The zipapp, or in a source tree the folder, that holds this package.
    env["MPORTAL_RUNNER_FILE"] = str(Path(__file__).parents[3])
    env["MPORTAL_RUNTIME_FILE"] = str(place.folder.meshes)
    env["MPORTAL_REPORT_FILE"] = str(place.folder.report)
    if place.config.metrics_s > 0:
        env["MPORTAL_WATCH_FILE"] = str(place.folder.watch)
    return env


def _base(place: Place) -> dict[str, str]:
    config = place.config
    env = dict(os.environ)
    given = {name: env[name] for name in config.secrets if name in env}
    env.update(revealed(given, config.token))
    env.update(config.envs)
    env.update(
        SKYPILOT_NODE_RANK=str(place.rank),
        SKYPILOT_NODE_IPS="\n".join(node.address for node in config.nodes),
        SKYPILOT_NUM_NODES=str(len(config.nodes)),
        MPORTAL_URL=config.portal_url,
        MPORTAL_PROJECT=config.project,
        MPORTAL_JOB_ID=str(config.job_id),
        MPORTAL_ATTEMPT=str(config.attempt_number),
        MPORTAL_RANK=str(place.rank),
        MPORTAL_TOKEN=config.driver_token,
    )
    env[NODE_MARK] = str(place.folder.root)
    # Task contexts write there what they do.
    env["MPORTAL_TASKS_FOLDER"] = str(place.folder.tasks)
    if config.gateway:
        # For `mportal_code`, and shells, which then know the work directory by its lasting name.
        env["MPORTAL_WORKDIR"] = env["PWD"] = str(place.folder.workdir)
        env["MPORTAL_GENERATIONS"] = str(place.folder.code / "gen")
    # Only the cluster knows these two; on a machine without SkyPilot they get a plain value.
    env.setdefault("SKYPILOT_NUM_GPUS_PER_NODE", "0")
    task_id = f"mportal-{config.project}-{config.job_id}-{config.attempt_number}"
    env.setdefault("SKYPILOT_TASK_ID", task_id)
    # `mportal_runtime`, and what makes Python programs show whole lines at once.
    python_path = [str(place.folder.runtime), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(filter(None, python_path))
    return env
