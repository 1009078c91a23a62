"""The keeper's part of the fake backend: machines that are switched off, priced and listed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from jobs.backends.base import Bill, Candidate, CloudState, GpuState, Plan, SeenCluster
from jobs.backends.fake.state import HOUR_S, FakeCluster
from jobs.backends.fake.store import FakeStore
from jobs.errors import NotYetGoneError

DEFAULT_USD_PER_HOUR = "1.20"


class FakeKeeper(FakeStore):
    """`jobs.backends.base.ClusterKeeper` by the clock. One place, one kind of machine."""

    def set_price(self, usd_per_hour: str) -> None:
        """Set what a node costs from now on, in US$ an hour."""
        self._set("price", usd_per_hour)

    def refuse_stop(self, why: str) -> None:
        """Refuse from now on to stop machines and keep their disks, for the reason `why`."""
        self._set("no_stop", why)

    def why_no_stop(self, cluster_name: str) -> str:
        """Return the reason that `refuse_stop` set; "" by default."""
        return str(self._setting("no_stop", ""))

    def stop_machines(self, cluster_name: str) -> None:
        """Switch the nodes off, which takes the plan's `switch_off_s`; their runners die."""
        with self._locked("stop_machines", cluster_name):
            cluster, now = self._find(cluster_name), self._clock()
            if cluster is None or cluster.is_lost(now):
                return
            if cluster.off_at is None:
                self._change_now(cluster_name, _switched_off)
                cluster, now = self._read_now(cluster_name)
            if not cluster.is_off(now):
                raise NotYetGoneError(f"{cluster_name} is still being switched off.")

    def autostop(self, cluster_name: str, minutes: int, *, down: bool) -> None:
        """Store the minutes and do nothing else: see `backstop`."""
        with self._locked("autostop", cluster_name):
            cluster = self._find(cluster_name)
            if cluster is not None:
                self._store(cluster_name, replace(cluster, autostop_minutes=minutes))

    def backstop(self, cluster_name: str) -> int | None:
        """Return the minutes that were requested last, at launch or by `autostop`."""
        return self._cluster(cluster_name).autostop_minutes

    def existing(self) -> list[SeenCluster]:
        """List every cluster that exists."""
        now = self._clock()
        found = [(name, self._find(name)) for name in self._names()]
        return [self._seen(name, each, now) for name, each in found if each is not None]

    def bill(self, cluster_name: str, since: datetime) -> Bill | None:
        """Report a cost by the hours that the machines were on, also after they were terminated."""
        cluster = self._find(cluster_name)
        if cluster is None:
            stored = self._read(self._directory / "bills" / f"{cluster_name}.json")
            return None if stored is None else Bill(Decimal(stored["usd"]), stored["duration_s"])
        return self._bill(cluster)

    def plan(self, spec: dict[str, Any]) -> Plan:
        """Return the only kind of machine that there is."""
        nodes = int(spec.get("num_nodes") or 1)
        candidate = Candidate(
            infra="fake",
            instance_type="fake-1",
            cpus="4",
            memory="16",
            accelerators="",
            use_spot=False,
            usd_per_hour=self._price(nodes),
            is_chosen=True,
        )
        return Plan((candidate,))

    def clouds(self) -> list[CloudState]:
        """List the only cloud that there is."""
        return [CloudState("fake", is_enabled=True)]

    def gpus(self) -> list[GpuState]:
        """Return an empty list: there are no GPUs."""
        return []

    def _keep_bill(self, cluster_name: str, cluster: FakeCluster) -> None:
        bill = self._bill(cluster)
        content = {"usd": str(bill.usd), "duration_s": bill.duration_s}
        self._write(self._directory / "bills" / f"{cluster_name}.json", content)

    def _bill(self, cluster: FakeCluster) -> Bill:
        seconds = cluster.seconds_on(self._clock())
        hours = Decimal(seconds) / Decimal(HOUR_S)
        return Bill((self._price(cluster.num_nodes) * hours).quantize(Decimal("1e-6")), seconds)

    def _price(self, nodes: int) -> Decimal:
        return Decimal(self._setting("price", DEFAULT_USD_PER_HOUR)) * nodes

    def _seen(self, name: str, cluster: FakeCluster, now: float) -> SeenCluster:
        return SeenCluster(
            name=name,
            status="STOPPED" if cluster.is_off(now) else "UP" if now >= cluster.up_at else "INIT",
            key=f"{name}-{cluster.launched_at}",
            infra="fake",
            resources=f"{cluster.num_nodes}x(fake-1)",
            num_nodes=cluster.num_nodes,
            launched_at=datetime.fromtimestamp(cluster.launched_at, timezone.utc),
            usd_per_hour=self._price(cluster.num_nodes),
            owner="mportal",
        )


def _switched_off(cluster: FakeCluster, now: float) -> FakeCluster:
    runs = tuple(run if run.has_ended(now) else replace(run, ended_at=now) for run in cluster.runs)
    return replace(cluster, runs=runs, off_at=now + cluster.plan.switch_off_s)
