"""The paths of an installation's SkyPilot server, and whether a cloud was added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What the clouds' own tools read below HOME: a file in any of these means that one was added.
PLACES_OF_CREDENTIALS = (
    ".slurm",
    ".kube",
    ".sky/ssh_node_pools.yaml",
    ".aws",
    ".azure",
    ".cloudflare",
    ".config/doctl",
    ".config/gcloud",
    ".config/mithril",
    ".config/vastai",
    ".coreweave",
    ".cudo",
    ".fluidstack",
    ".hyperbolic",
    ".ibm",
    ".lambda_cloud",
    ".nebius",
    ".oci",
    ".paperspace",
    ".prime",
    ".runpod",
    ".scp",
    ".seeweb_cloud",
    ".shadeform",
    ".verda",
    ".vsphere",
    ".yotta",
)


@dataclass(frozen=True, slots=True)
class SkyPilotPaths:
    """The paths that the server uses: all below `root`, and its log."""

    root: Path
    log: Path

    @property
    def home(self) -> Path:
        """HOME of the server: clouds' credentials are there as in a user's own home."""
        return self.root / "home"

    @property
    def client_home(self) -> Path:
        """HOME of the processes that ask: SkyPilot sends what is configured there along."""
        return self.root / "client"

    @property
    def token_file(self) -> Path:
        """The token that the server wants."""
        return self.root / "token"

    @property
    def plugins(self) -> Path:
        """The list of plugins that the server loads."""
        return self.root / "plugins.yaml"

    @property
    def server_file(self) -> Path:
        """JSON {"endpoint", "token"}: how processes of the portal reach the server."""
        return self.root / "server.json"

    @property
    def endpoint(self) -> str:
        """The address at which the server listens; empty before its first start."""
        try:
            return str(json.loads(self.server_file.read_text())["endpoint"])
        except (FileNotFoundError, ValueError, KeyError):
            return ""

    def has_cloud(self) -> bool:
        """Whether there are credentials of any cloud."""
        return any(_holds_a_file(self.home / place) for place in PLACES_OF_CREDENTIALS)


def _holds_a_file(place: Path) -> bool:
    return place.is_file() or any(each.is_file() for each in _below(place))


def _below(place: Path) -> Iterator[Path]:
    return place.rglob("*") if place.is_dir() else iter(())
