"""The shell scripts of a job: install its packages, then run its entrypoint."""

from __future__ import annotations

import shlex

from monarch_client.context.options import RuntimeEnv

_INSTALL = "python3 -m pip install --quiet --disable-pip-version-check --no-input --upgrade"


def setup_script(env: RuntimeEnv, folder: str) -> str:
    """Return the script that installs the packages of a job; empty if it has none.

    `folder`, a word of shell, is where they go: the Python of the host stays as it is.
    """
    packages = " ".join(shlex.quote(each) for each in env.package_requirements)
    return f"{_INSTALL} --target {folder} -- {packages}" if packages else ""


def run_script(entrypoint: str, env: RuntimeEnv, folder: str) -> str:
    """Return the script that runs the entrypoint with the packages of the job."""
    if not env.package_requirements:
        return entrypoint
    return f'export PYTHONPATH={folder}"${{PYTHONPATH:+:$PYTHONPATH}}"\n{entrypoint}'
