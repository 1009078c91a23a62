"""`mportal admin pool|queue|quota|project`: how machines are shared, for administrators."""

from __future__ import annotations

import click

from monarch_client.cli.output import duration
from monarch_client.cli.projects import show_limits
from monarch_client.cli.queues import preemption, said, whose
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say
from monarch_client.cli.verb_group import VerbGroup
from monarch_client.spec.amounts import amount_in
from monarch_client.spec.durations import seconds_in

NONE = "none"


class _Cap(click.ParamType):
    """WHAT=N, such as nodes=8 or gpus:H100=64. The portal decides which resources exist."""

    name = "WHAT=N"

    def convert(
        self,
        value: str | tuple[str, float],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, float]:
        """Return the two parts."""
        if not isinstance(value, str):
            return value
        amount = amount_in(value)
        if amount is None:
            self.fail(f"{value!r} is not WHAT=N, such as nodes=8 or gpus:H100=64.", param, ctx)
        return amount


class _Length(click.ParamType):
    """A length of time with its unit: 12 alone would be seconds, which is rarely meant."""

    name = "LENGTH"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value unchanged."""
        if seconds_in(value) is None or value.isdigit():
            self.fail(
                f"{value!r} is no length of time with its unit, such as 12h or 7d.", param, ctx
            )
        return value


class _Caps(click.ParamType):
    """WHAT=N,WHAT=N in one, or none."""

    name = "WHAT=N,..."

    def convert(
        self,
        value: str | dict[str, float],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> dict[str, float]:
        """Return amounts by resource."""
        if not isinstance(value, str):
            return value
        if value == NONE:
            return {}
        return dict(_CAP.convert(each, param, ctx) for each in value.split(","))


_CAP = _Cap()
Caps = tuple[tuple[str, float], ...]


@click.group(cls=VerbGroup)
def pool() -> None:
    """Manage pools: machines of a backend that queues share."""


@pool.command("set")
@click.argument("name")
@click.argument("caps", nargs=-1, type=_CAP, metavar="[WHAT=N]...")
@click.option("--backend", help="The backend; required for a new pool.")
@click.option(
    "--patience",
    type=_Length(),
    help="Wait after which a job comes before higher priorities, such as 12h.",
)
@click.option("--half-life", type=_Length(), help="Time after which usage counts half, such as 7d.")
@click.option(
    "--reclaim/--no-reclaim",
    default=None,
    help="Let projects reclaim their nominal share by preemption.",
)
@click.option(
    "--preempts-by-rank/--no-preempts-by-rank",
    default=None,
    help="Let queues preempt jobs of lower ones.",
)
@pass_session
def pool_set(session: Session, /, name: str, caps: Caps, **change: str | bool | None) -> None:
    """Create or change a pool, such as nodes=8 gpus:H100=64."""
    made = session.client.set_pool(name, caps=dict(caps) or None, **change)
    lengths = {"patience": made.patience_s, "half-life": made.half_life_s}
    parts = [f"{name} {duration(seconds)}" for name, seconds in lengths.items()]
    parts += [preemption(made)] if preemption(made) else []
    say(f"{made.name}: {said(made.amounts)} on {made.backend}; {'; '.join(parts)}")


@pool.command("rm")
@click.argument("name")
@pass_session
def pool_rm(session: Session, name: str) -> None:
    """Delete a pool that no queue uses, with its own quotas."""
    session.client.delete_pool(name)
    say(f"{name}: removed")


@click.group(cls=VerbGroup)
def queue() -> None:
    """Manage queues, which jobs name with portal.queue."""


@queue.command("set")
@click.argument("name")
@click.option("--rank", type=int, help="Jobs of a higher rank come first in the same pool.")
@click.option("--pool", "pool_name", help=f"The pool of its jobs; {NONE} removes it.")
@click.option(
    "--preemptible/--no-preemptible",
    default=None,
    help="Make all its jobs preemptible.",
)
@pass_session
def queue_set(
    session: Session, /, name: str, pool_name: str | None, **change: int | bool | None
) -> None:
    """Create or change a queue."""
    pool_name = "" if pool_name == NONE else pool_name
    made = session.client.set_queue(name, pool=pool_name, **change)
    preemptible = ", preemptible" if made.preemptible else ""
    say(f"{made.name}: rank {made.rank}, pool {made.pool or NONE}{preemptible}")


@queue.command("rm")
@click.argument("name")
@pass_session
def queue_rm(session: Session, name: str) -> None:
    """Delete a queue without jobs, with its quotas."""
    session.client.delete_queue(name)
    say(f"{name}: removed")


@click.group(cls=VerbGroup)
def quota() -> None:
    """Manage quotas: limits on running jobs."""


@quota.command("set")
@click.argument("caps", nargs=-1, required=True, type=_CAP, metavar="WHAT=N...")
@click.option("--queue", default="", help="For all jobs of this queue.")
@click.option("--project", "-p", default="", help="For this project.")
@click.option("--user", default="", help="For one person in the project.")
@click.option("--each-person", "per_person", is_flag=True, help="For each person separately.")
@click.option("--pool", default="", help="Only in this pool; by default everywhere.")
@click.option(
    "--nominal",
    type=_Caps(),
    help=f"The nominal share, nodes=4,gpus=32; above it is borrowed. {NONE} removes it.",
)
@pass_session
def quota_set(
    session: Session, /, caps: Caps, nominal: dict[str, float] | None, **of: str | bool
) -> None:
    """Set a quota, such as jobs=4 nodes=8 gpus=64 gpus:H100=32 usd_per_hour=40."""
    made = session.client.set_quota(dict(caps), nominal=nominal, **of)
    say(f"{made.id}: {whose(made)}: {said(made.amounts)}")


@quota.command("rm")
@click.argument("quota_id", type=int, metavar="ID")
@pass_session
def quota_rm(session: Session, quota_id: int) -> None:
    """Delete a quota; `mportal quota list` shows its ID."""
    session.client.delete_quota(quota_id)
    say(f"{quota_id}: removed")


@click.group(cls=VerbGroup)
def project() -> None:
    """Manage projects."""


@project.command("add")
@click.argument("slug")
@click.option("--name", default="", help="The name on pages; by default the slug.")
@pass_session
def project_add(session: Session, slug: str, name: str) -> None:
    """Create a project with you as its first admin."""
    made = session.client.make_project(slug, name=name)
    say(f"{made.slug}: made; set its members with `mportal members set`")


@project.command("weight")
@click.argument("slug")
@click.argument("weight", type=float)
@pass_session
def project_weight(session: Session, slug: str, weight: float) -> None:
    """Set the weight of a project in fair sharing."""
    made = session.client.set_weight(slug, weight)
    say(f"{made.project}: weight {made.weight:g}")


@project.command("limits")
@click.argument("slug")
@click.option("--max-duration", help=f"The longest run of a job, such as 12h; {NONE} removes it.")
@click.option("--max-idle", help=f"The idle minutes of a warm cluster; {NONE} removes it.")
@pass_session
def project_limits(
    session: Session, slug: str, max_duration: str | None, max_idle: str | None
) -> None:
    """Set how long jobs of a project may run, and its warm clusters be idle."""
    changes: dict[str, int | None] = {}
    if max_duration is not None:
        seconds = seconds_in(max_duration)
        if max_duration != NONE and (not seconds or max_duration.isdigit()):
            raise click.UsageError(f"{max_duration} is no length of time such as 12h, or {NONE}.")
        changes["max_duration_s"] = seconds
    if max_idle is not None:
        if max_idle != NONE and not max_idle.isdecimal():
            raise click.UsageError(f"{max_idle} is no number of minutes, or {NONE}.")
        changes["max_idle_minutes"] = None if max_idle == NONE else int(max_idle)
    if not changes:
        raise click.UsageError("Give --max-duration, --max-idle, or both.")
    show_limits(slug, session.client.set_limits(slug, **changes))
