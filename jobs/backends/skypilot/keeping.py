"""Machines that outlive a job: switched off, watched, paid for."""

from __future__ import annotations

import time
from datetime import datetime
from decimal import Decimal

from jobs.backends.base import Bill, SeenCluster
from jobs.backends.skypilot.offers import Offers, why_never_stopped
from jobs.backends.skypilot.views import ENDS, Row, active, seen, verb_of
from jobs.errors import BackendError, NotYetGoneError

# How long to wait before a failed termination is requested again.
AGAIN_S = 15.0


class Keeping(Offers):
    """The part of the backend that concerns clusters, not attempts."""

    def autostop(self, cluster_name: str, minutes: int, *, down: bool) -> None:
        """Set SkyPilot's autostop as a backstop to the portal's. Silent if it is not up."""
        row = self._calls.row(cluster_name)
        if row is not None and row["status"] == "UP" and row.get("autostop_minutes") != minutes:
            self._calls.start(
                "autostop", cluster_name=cluster_name, idle_minutes=minutes, down=down
            )

    def why_no_stop(self, cluster_name: str) -> str:
        """Explain by the cluster's cloud why its machines can't be stopped; "" if they can."""
        row = self._calls.row(cluster_name)
        return "" if row is None else why_never_stopped(str(row.get("cloud") or ""))

    def stop_machines(self, cluster_name: str) -> None:
        """Ask until the row says STOPPED."""
        requests = self._calls.requests_of(cluster_name)
        row = self._calls.row(cluster_name)
        if row is None or row["status"] == "STOPPED":
            return
        if active(requests, ENDS) is None:
            if (why := self._failed_just_now(requests)) is not None:
                raise BackendError(why)
            self._calls.start("stop", cluster_name=cluster_name)
        raise NotYetGoneError("It is being stopped.")

    def existing(self) -> list[SeenCluster]:
        """List all clusters that SkyPilot's server knows."""
        return [seen(row) for row in self._calls.rows()]

    def bill(self, cluster_name: str, since: datetime) -> Bill | None:
        """Report SkyPilot's cost; a name may have several incarnations, which are added up."""
        days = max(1, (datetime.now(since.tzinfo) - since).days + 1)
        report = self._calls.value("cost_report", fresh_s=10.0, days=days)
        rows = [row for row in report if row["name"] == cluster_name]
        if not rows:
            return None
        usd = sum((Decimal(str(row["usd"])) for row in rows), Decimal(0))
        return Bill(usd, sum(float(row["duration_s"]) for row in rows))

    def _failed_just_now(self, requests: list[Row]) -> str | None:
        """Return why the last request of this kind failed, if that was at most AGAIN_S ago."""
        last = next((row for row in requests if verb_of(row) in ENDS), None)
        if last is None or last["status"] != "FAILED":
            return None
        if time.time() - float(last.get("finished_at") or 0) > AGAIN_S:
            return None
        failure = self._calls.failure_of(str(last["request_id"]))
        return failure.message if failure else "SkyPilot gave no reason."
