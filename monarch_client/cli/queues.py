"""`mportal queue` and `mportal quota`: who waits for what, and how much of what is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from monarch_client.cli.output import Output, age, duration, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import tell
from monarch_client.cli.verb_group import VerbGroup

if TYPE_CHECKING:
    from monarch_client.wire.queue import Amount, Place, Quota, Share, Turn
    from monarch_client.wire.timeline import TimelineJob, TimelineLane

_MOST_TURNS = 200
_USD_PER_HOUR = "usd_per_hour"


def said(amounts: Sequence[Amount]) -> str:
    """Return amounts for people: `nodes 3/8, gpus:H100 16/64`."""
    return ", ".join(_amount(each) for each in amounts)


def _amount(amount: Amount) -> str:
    form = ".2f" if amount.what == _USD_PER_HOUR else "g"
    used = "" if amount.used is None else f"{amount.used:{form}}"
    if amount.cap is None:
        return f"{amount.what} {used or 0}"
    own = "" if amount.nominal is None else f" (own {amount.nominal:g})"
    return f"{amount.what} {used}{'/' if used else '<='}{amount.cap:{form}}{own}"


def whose(quota: Quota) -> str:
    """Return the owner of the quota."""
    if quota.kind == "queue":
        return f"queue {quota.queue}"
    who = {"person": quota.user, "each_person": "each person"}.get(quota.kind)
    return f"{who} in {quota.project}" if who else f"project {quota.project}"


def preemption(place: Place) -> str:
    """Return the forms of preemption of a pool; empty: none."""
    rights = {"reclaims": place.reclaim, "preempts by rank": place.preempts_by_rank}
    return ", ".join(right for right, is_given in rights.items() if is_given)


def _place(row: Share | Turn) -> str:
    return row.place if row.kind == "pool" else f"({row.place})"


def _people(quota: Quota) -> str:
    return "; ".join(f"{each.user}: {said(each.amounts)}" for each in quota.people)


@dataclass(frozen=True)
class LaneJob:
    """A job in the timeline of a pool or backend."""

    lane: TimelineLane
    job: TimelineJob
    now: datetime

    def moment(self, at: datetime | None, basis: str) -> str:
        """Return a moment from now, and how certain it is."""
        return "unknown" if at is None else _estimate((at - self.now).total_seconds(), basis)


_CERTAINTY = {"bounds": " at the latest", "past_runs": " probably"}


def _estimate(left_s: float, basis: str) -> str:
    """Return a time from now, and how certain it is: `in 20 min probably`."""
    text = f"in {duration(left_s)}" if left_s > 0 else f"{duration(-left_s)} ago"
    return text + _CERTAINTY.get(basis, "")


def _ending(place: Place) -> str:
    """Return how many nodes are being terminated; empty if none are."""
    return f"{place.ending} node{'s' * (place.ending != 1)} ending" if place.ending else ""


def _start(turn: Turn) -> str:
    if turn.expected_at is None:
        return ""
    left_s = (turn.expected_at - datetime.now(timezone.utc)).total_seconds()
    if left_s >= 1:
        return _estimate(left_s, turn.basis)
    # A job that lasts longer than usual may end at any moment.
    return "any moment probably" if turn.basis == "past_runs" else "now"


TIMELINE_COLUMNS = {
    "POOL": lambda row: row.lane.name if row.lane.kind == "pool" else f"({row.lane.name})",
    "JOB": lambda row: "-" if row.job.job_id is None else str(row.job.job_id),
    "NAME": lambda row: row.job.name or "(of another project)",
    "STATUS": lambda row: row.job.status,
    "NODES": lambda row: row.job.machines,
    "BEGIN": lambda row: row.moment(row.job.begin, row.job.begin_basis),
    "END": lambda row: row.moment(row.job.end, row.job.end_basis),
}
QUEUE_COLUMNS = {
    "QUEUE": lambda queue: queue.name,
    "RANK": lambda queue: str(queue.rank),
    "POOL": lambda queue: queue.pool or "-",
    "WAITING": lambda queue: str(queue.waiting),
    "HELD": lambda queue: str(queue.held),
    "RUNNING": lambda queue: str(queue.running),
    "NOTE": lambda queue: "preemptible" if queue.preemptible else "",
}
PLACE_COLUMNS = {
    "POOL": lambda place: place.name if place.kind == "pool" else f"({place.name})",
    "BACKEND": lambda place: place.backend,
    "USED": lambda place: said(place.amounts),
    "QUEUES": lambda place: ", ".join(place.queues) or "-",
    "NOTE": lambda place: "; ".join(
        filter(None, (place.problem, _ending(place), preemption(place)))
    ),
}
QUOTA_COLUMNS = {
    "ID": lambda quota: str(quota.id),
    "WHOSE": whose,
    "POOL": lambda quota: quota.pool or "-",
    "USED": lambda quota: said(quota.amounts),
    "BY": _people,
}
SHARE_COLUMNS = {
    "POOL": _place,
    "PROJECT": lambda share: share.project or f"({share.projects} others)",
    "USED + RESERVED": lambda share: f"{share.used_hours:.1f}",
    "OF ALL": lambda share: f"{share.percent:.0f} %",
    "WEIGHT": lambda share: "" if share.weight is None else f"{share.weight:g}",
    "BY WEIGHT": lambda share: "" if share.counts_for is None else f"{share.counts_for:.1f}",
}
TURN_COLUMNS = {
    "POOL": _place,
    "POSITION": lambda turn: str(turn.position),
    "JOB": lambda turn: "-" if turn.job_id is None else str(turn.job_id),
    "NAME": lambda turn: turn.name or "(of another project)",
    "PROJECT": lambda turn: turn.project,
    "OWNER": lambda turn: turn.owner,
    "NEEDS": lambda turn: turn.needs,
    "WAITS": lambda turn: age(turn.since),
    "STARTS": _start,
    "WHY": lambda turn: turn.sentence,
}


@click.group(cls=VerbGroup)
def queue() -> None:
    """Show queues, pools and queued jobs."""


@queue.command("list")
@output_options
@pass_session
def queue_list(session: Session, output: Output) -> None:
    """List queues, the highest rank first, with counts of jobs."""
    output.rows(
        session.client.queues(),
        QUEUE_COLUMNS,
        key="name",
        empty="No queues. An administrator adds one with mportal admin queue set.",
    )


@queue.command("jobs")
@click.option(
    "--limit",
    "-n",
    default=50,
    show_default=True,
    type=click.IntRange(1, _MOST_TURNS),
    help="The most jobs to list.",
)
@output_options
@pass_session
def queue_jobs(session: Session, *, limit: int, output: Output) -> None:
    """List jobs that wait for machines, in scheduling order."""
    page = session.client.waiting(limit=limit)
    seen = [row for row in page.results if row.job_id is not None]
    rows = seen if output.quiet else page.results
    output.rows(
        rows,
        TURN_COLUMNS,
        key="job_id",
        least=("OWNER", "PROJECT", "POOL"),
        empty="No jobs wait for machines. Running ones: mportal ps",
    )
    if page.next:
        tell(f"These are the first {limit}; -n shows up to {_MOST_TURNS}.")


@queue.command("timeline")
@click.option(
    "--hours",
    type=click.IntRange(1, 24 * 14),
    default=6,
    show_default=True,
    help="The length, with the present in its middle.",
)
@output_options
@pass_session
def queue_timeline(session: Session, *, hours: int, output: Output) -> None:
    """Show what has machines from when until when in each pool, and what starts next."""
    found = session.client.timeline(hours=hours)
    rows = [LaneJob(lane, job, found.now) for lane in found.lanes for job in lane.jobs]
    if output.is_for_people:
        output.rows(
            rows,
            TIMELINE_COLUMNS,
            least=("NODES", "POOL"),
            empty="No jobs in these hours. For more: --hours",
        )
        for lane in found.lanes:
            if lane.left_out:
                tell(f"{lane.name}: {lane.left_out} more jobs wait.")
        if not found.is_whole:
            tell("Earlier attempts are not listed: choose fewer --hours.")
    elif output.quiet:
        output.rows([row.job for row in rows if row.job.job_id], {}, key="job_id")
    else:
        output.one(found, lambda: None)


@queue.command("pools")
@output_options
@pass_session
def queue_pools(session: Session, output: Output) -> None:
    """List pools, and in brackets backends, with their usage."""
    rows: list[Place] = session.client.pools()
    output.rows(
        rows,
        PLACE_COLUMNS,
        key="name",
        empty="No pools. An administrator adds one with mportal admin pool set.",
    )


@queue.command("shares")
@output_options
@pass_session
def queue_shares(session: Session, output: Output) -> None:
    """List the usage of projects in each pool, the lowest first."""
    shares = session.client.shares()
    output.rows(
        shares,
        SHARE_COLUMNS,
        key="project",
        least=("USED + RESERVED", "WEIGHT"),
        empty="No usage: no job of your projects has run lately.",
    )


@click.group(cls=VerbGroup)
def quota() -> None:
    """Show quotas: limits on running jobs."""


@quota.command("list")
@click.option("--project", "-p", help="Only of this project.")
@output_options
@pass_session
def quota_list(session: Session, *, project: str | None, output: Output) -> None:
    """List quotas of queues and of your projects, with usage."""
    output.rows(
        session.client.quotas(project),
        QUOTA_COLUMNS,
        empty="No quotas. An administrator sets one with mportal admin quota set.",
    )
