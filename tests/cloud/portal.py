"""A portal of its own on a user's account, and the check that nothing remains there."""

from __future__ import annotations

import json
from typing import Any

from monarch_client.skypilot.caller import CallerOptions, SkyCaller
from tests.cloud.account import Account
from tests.cluster.portal import FINAL, PROJECT, SkyPilotPortal
from tests.cluster.rig import places
from tests.cluster.rig.skypilot import prepare_home
from tests.waiting import eventually

GONE_S = 1200.0


class PortalOnCloud(SkyPilotPortal):
    """A portal to which one account was added. Nodes do not reach it: it fetches their lines."""

    def __init__(self, account: Account) -> None:
        super().__init__(MPORTAL_SKYPILOT="on")
        self.account = account
        self.numbers: list[int] = []
        if places.MACHINE_FILE.exists():
            # No list of GPU names can be fetched there, and no package be built.
            prepare_home(self.home.path / "skypilot" / "home")

    def add_account(self, *, allow_exec: bool) -> str:
        """Add the credentials and return what SkyPilot then reports of its clouds."""
        exec_too = ["--allow-exec"] if allow_exec else []
        done = self.manage("cloud", "add", *self.account.how_to_add(), *exec_too)
        assert done.returncode == 0, done.stderr
        return self.mportal("admin", "cloud", "check").stdout

    def submit(self, **spec: Any) -> int:
        """Submit a job; it is cancelled at the end if it still runs."""
        self.numbers.append(super().submit(**spec))
        return self.numbers[-1]

    def names_at_skypilot(self) -> set[str]:
        """List all clusters of SkyPilot's server after it has refreshed them from the cloud."""
        paths = self.home.skypilot
        server = json.loads(paths.server_file.read_text())
        caller = SkyCaller(CallerOptions(paths.client_home, server["endpoint"], server["token"]))
        try:
            return {row["name"] for row in caller.call("status", {"names": None}, 120)}
        finally:
            caller.close()

    def clear(self) -> set[str]:
        """End all jobs and clusters; return the names of those that remain."""
        for number in self.numbers:
            if self.job(number)["status"] not in FINAL:
                self.cancel(number)

        def is_empty() -> bool:
            with self.client() as client:
                for name, row in self.clusters().items():
                    if row["can_down"]:
                        client.post(f"{PROJECT}/clusters/{name}/actions/down")
            return not self.clusters() and not self.names_at_skypilot()

        return set() if eventually(is_empty, timeout_s=GONE_S) else self.names_at_skypilot()
