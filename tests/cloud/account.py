"""The differences between the clouds that the suite can use: machines, credentials."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Small, and yet enough for a Monarch worker. A disk must hold the image and torchmonarch.
_OF_CLOUDS: dict[str, Any] = {"cpus": "2+", "memory": "4+", "disk_size": 64}
_ELSEWHERE: dict[str, Any] = {"cpus": "2", "memory": "4"}


@dataclass(frozen=True, slots=True)
class Account:
    """A user's account with one cloud, as named by `--cloud` and `--credentials`."""

    kind: str  # aws, gcp, kubernetes, slurm
    place: str  # region, context, cluster; may be empty for clouds
    credentials: str = ""

    @classmethod
    def parse(cls, cloud: str, credentials: str) -> Account:
        """Parse the value of `--cloud`. ValueError if it names no known cloud.

        Forms: `aws`, `gcp/us-central1`, `kubernetes/<context>`, `slurm/<cluster>`. Credentials
        default to where the cloud's own tools keep them.
        """
        kind, _, place = cloud.partition("/")
        if kind not in _ADD:
            raise ValueError(f"--cloud names none of {', '.join(_ADD)}: {cloud}")
        if kind in {"kubernetes", "slurm"} and not place:
            raise ValueError(f"--cloud {kind}/NAME: which one?")
        return cls(kind, place, credentials)

    @property
    def infra(self) -> str:
        """The `resources.infra` of its jobs."""
        kind = {"kubernetes": "k8s"}.get(self.kind, self.kind)
        return f"{kind}/{self.place}" if self.place else kind

    @property
    def can_stop(self) -> bool:
        """Whether machines can be stopped and keep their disks."""
        return self.kind in {"aws", "gcp"}

    @property
    def resources(self) -> dict[str, Any]:
        """The requested resources of one small machine."""
        return {"infra": self.infra, **(_OF_CLOUDS if self.can_stop else _ELSEWHERE)}

    def how_to_add(self) -> list[str]:
        """Return the arguments of `manage.py cloud add`. ValueError if there are no credentials."""
        return [self.kind, *_ADD[self.kind](self)]


def _file(account: Account, default: str | None) -> list[str]:
    path = Path(account.credentials or default or "").expanduser()
    if not path.is_file():
        raise ValueError(
            f"--credentials FILE: {path} is no file with an account of {account.kind}."
        )
    return ["--file", str(path)]


def _aws(account: Account) -> list[str]:
    return _file(account, os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"))


def _gcp(account: Account) -> list[str]:
    return _file(account, os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"))


def _kubernetes(account: Account) -> list[str]:
    return _file(account, os.environ.get("KUBECONFIG", "~/.kube/config"))


def _slurm(account: Account) -> list[str]:
    """Read the options from an ssh configuration, where SkyPilot itself keeps them."""
    configuration = Path(account.credentials or "~/.slurm/config").expanduser()
    name = account.place.partition("/")[0]
    done = subprocess.run(
        ["ssh", "-G", "-F", str(configuration), name], capture_output=True, text=True, check=False
    )
    if done.returncode or not configuration.is_file():
        raise ValueError(f"--credentials FILE: {configuration} has no Host {name}. {done.stderr}")
    configured = dict(
        line.split(" ", 1) for line in reversed(done.stdout.splitlines()) if " " in line
    )
    options = ["--name", name, "--host", configured["hostname"], "--user", configured["user"]]
    jump = ["--proxy-jump", configured["proxyjump"]] if "proxyjump" in configured else []
    key = str(Path(configured["identityfile"]).expanduser())
    return [*options, "--port", configured["port"], "--key", key, *jump]


_ADD: dict[str, Callable[[Account], list[str]]] = {
    "aws": _aws,
    "gcp": _gcp,
    "kubernetes": _kubernetes,
    "slurm": _slurm,
}
