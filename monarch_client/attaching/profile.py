"""Monarch's time-outs in a program that is connected through a network which may be interrupted.

With the time-outs of drivers, which are in the workers' network, an interruption of a minute loses
all processes. Beyond these, calls wait for ever: `loss` ends them.
"""

from __future__ import annotations

import os
from pathlib import Path

from monarch_client.runner.programs.environment import MONARCH_TUNING
from monarch_client.runner.vocabulary.limits import MAX_AWAY_S

# How long a program may be without its workers, which hold their replies for little longer.
LIMIT_S = float(MAX_AWAY_S)
_LONGER = "900s"
# What a program leaves behind holds memory of GPUs: it ends soon after the program is lost.
_ORPHANED = f"{MAX_AWAY_S + 120}s"
TIMEOUTS = {
    **MONARCH_TUNING,
    "HYPERACTOR_MESSAGE_DELIVERY_TIMEOUT": _LONGER,
    "HYPERACTOR_CHANNEL_RECONNECT_TIMEOUT": _LONGER,
    "HYPERACTOR_MESH_GET_PROC_STATE_MAX_IDLE": _LONGER,
    "HYPERACTOR_MESH_GET_ACTOR_STATE_MAX_IDLE": _LONGER,
    "HYPERACTOR_MESH_ORPHAN_TIMEOUT": _ORPHANED,
    # The reports on the actors of a call that is under way.
    "HYPERACTOR_MESH_SUPERVISION_WATCHDOG_TIMEOUT": _LONGER,
    "HYPERACTOR_MESH_SUPERVISION_POLL_FREQUENCY": "5s",
}
CERTIFICATES = {"CERT": "leaf.crt", "KEY": "leaf.key", "CA": "ca.crt"}


def use(certificates: Path | None = None) -> None:
    """Set the time-outs, and the certificates of a folder, in this process's Monarch.

    A time-out that the user has set in the environment stays. Monarch reads the files of the
    certificates at each connection, so they can be renewed in place.
    """
    # Banned at the top of this module: programs without Monarch read the limit.
    from monarch._rust_bindings.monarch_hyperactor.config import (  # noqa: PLC0415
        reload_config_from_env,
    )

    os.environ.update(missing(os.environ))
    if certificates is not None:
        for name, file in CERTIFICATES.items():
            os.environ[f"HYPERACTOR_TLS_{name}"] = str(certificates / file)
    reload_config_from_env()


def missing(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """Return the time-outs that the user of this environment has not set.

    The environment of a driver has the runner's, which its user did not choose.
    """
    return {
        name: value
        for name, value in TIMEOUTS.items()
        if environment.get(name) in (None, MONARCH_TUNING.get(name))
    }
