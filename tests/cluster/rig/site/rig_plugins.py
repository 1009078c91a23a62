"""Plugins for an API server of SkyPilot's that belongs to no portal (`~/.sky/plugins.yaml`)."""

from __future__ import annotations

from typing import Any

from sky.server import plugins


class NetCheck(plugins.BasePlugin):
    """Look for the network at `url`, not at two public addresses that the rig cannot reach."""

    def __init__(self, url: str) -> None:
        self.url = url

    def install(self, extension_context: Any) -> None:
        from sky.backends import backend_utils

        backend_utils._TEST_IP_LIST[:] = [self.url]
