"""`mportal admin pool|queue|quota|project`: how machines are shared, for administrators."""

from __future__ import annotations

import re

import click

from monarch_client.cli.output import duration
from monarch_client.cli.queues import preemption, said, whose
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say
from monarch_client.spec.durations import seconds_in

NONE = "none"
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")


class _Cap(click.ParamType):
    """WHAT=N, such as nodes=8 or gpus:H100=64. What may be counted, the portal says."""

    name = "WHAT=N"

    def convert(
        self,
        value: str | tuple[str, float],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, float]:
        """The two halves."""
        if not isinstance(value, str):
            return value
        what, _, number = value.partition("=")
        if not what or not _NUMBER.fullmatch(number):
            self.fail(f"{value!r} is not WHAT=N, such as nodes=8 or gpus:H100=64.", param, ctx)
        return what, float(number) if "." in number else int(number)


class _Length(click.ParamType):
    """A length of time with its unit: 12 alone would be seconds, which nobody means."""

    name = "LENGTH"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As it is."""
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
        """Amounts by what is counted."""
        if not isinstance(value, str):
            return value
        if value == NONE:
            return {}
        return dict(_CAP.convert(each, param, ctx) for each in value.split(","))


_CAP = _Cap()
Caps = tuple[tuple[str, float], ...]


@click.group()
def pool() -> None:
    """Pools: machines of one backend that queues share out."""


@pool.command("set")
@click.argument("name")
@click.argument("caps", nargs=-1, type=_CAP, metavar="[WHAT=N]...")
@click.option("--backend", help="Whose machines; a new pool needs it.")
@click.option(
    "--patience", type=_Length(), help="After how long a job comes before more important ones: 12h."
)
@click.option("--half-life", type=_Length(), help="After how long an hour of use counts half: 7d.")
@click.option(
    "--reclaim/--no-reclaim",
    default=None,
    help="Whether projects take their nominal part back from who borrows.",
)
@click.option(
    "--preempts-by-rank/--no-preempts-by-rank",
    default=None,
    help="Whether queues take machines from lower ones.",
)
@pass_session
def pool_set(session: Session, /, name: str, caps: Caps, **change: str | bool | None) -> None:
    """Make a pool, or change it: how much it has, as nodes=8 gpus:H100=64."""
    made = session.client.set_pool(name, caps=dict(caps) or None, **change)
    lengths = {"patience": made.patience_s, "half-life": made.half_life_s}
    told = [f"{name} {duration(seconds)}" for name, seconds in lengths.items()]
    told += [preemption(made)] if preemption(made) else []
    say(f"{made.name}: {said(made.amounts)} on {made.backend}; {'; '.join(told)}")


@pool.command("rm")
@click.argument("name")
@pass_session
def pool_rm(session: Session, name: str) -> None:
    """Forget a pool that no queue uses, with the quotas that hold in it alone."""
    session.client.delete_pool(name)
    say(f"{name}: removed")


@click.group()
def queue() -> None:
    """Queues: where jobs wait that name them in portal.queue."""


@queue.command("set")
@click.argument("name")
@click.option("--rank", type=int, help="Jobs of a higher one come first in the same pool.")
@click.option("--pool", "pool_name", help=f"Whose machines its jobs get; {NONE} takes it away.")
@click.option(
    "--preemptible/--no-preemptible",
    default=None,
    help="Whether all its jobs may be stopped for others.",
)
@pass_session
def queue_set(
    session: Session, /, name: str, pool_name: str | None, **change: int | bool | None
) -> None:
    """Make a queue, or change it."""
    pool_name = "" if pool_name == NONE else pool_name
    made = session.client.set_queue(name, pool=pool_name, **change)
    preemptible = ", preemptible" if made.preemptible else ""
    say(f"{made.name}: rank {made.rank}, pool {made.pool or NONE}{preemptible}")


@queue.command("rm")
@click.argument("name")
@pass_session
def queue_rm(session: Session, name: str) -> None:
    """Forget a queue in which no job waits or runs, with its quotas."""
    session.client.delete_queue(name)
    say(f"{name}: removed")


@click.group()
def quota() -> None:
    """Quotas: how much may run at once."""


@quota.command("set")
@click.argument("caps", nargs=-1, required=True, type=_CAP, metavar="WHAT=N...")
@click.option("--queue", default="", help="Of all jobs of this queue.")
@click.option("--project", "-p", default="", help="Of this project.")
@click.option("--user", default="", help="Of one person in the project.")
@click.option("--each-person", "per_person", is_flag=True, help="Of each person by themselves.")
@click.option("--pool", default="", help="Of what runs in this pool; else wherever it runs.")
@click.option(
    "--nominal",
    type=_Caps(),
    help=f"A project's own part, nodes=4,gpus=32; beyond it borrows. {NONE}: all is its own.",
)
@pass_session
def quota_set(
    session: Session, /, caps: Caps, nominal: dict[str, float] | None, **of: str | bool
) -> None:
    """Set how much may run at once: jobs=4 nodes=8 gpus=64 gpus:H100=32 usd_per_hour=40."""
    made = session.client.set_quota(dict(caps), nominal=nominal, **of)
    say(f"{made.id}: {whose(made)}: {said(made.amounts)}")


@quota.command("rm")
@click.argument("quota_id", type=int, metavar="ID")
@pass_session
def quota_rm(session: Session, quota_id: int) -> None:
    """Take a quota away; `mportal quota list` has its ID."""
    session.client.delete_quota(quota_id)
    say(f"{quota_id}: removed")


@click.group()
def project() -> None:
    """Projects."""


@project.command("add")
@click.argument("slug")
@click.option("--name", default="", help="As pages show it; the slug, if nothing is said.")
@pass_session
def project_add(session: Session, slug: str, name: str) -> None:
    """Make a project, with you as its first admin."""
    made = session.client.make_project(slug, name=name)
    say(f"{made.slug}: made; set its members with `mportal members set`")


@project.command("weight")
@click.argument("slug")
@click.argument("weight", type=float)
@pass_session
def project_weight(session: Session, slug: str, weight: float) -> None:
    """Say how much of a pool a project may have beside others, as a proportion."""
    made = session.client.set_weight(slug, weight)
    say(f"{made.project}: weight {made.weight:g}")


GROUPS = (pool, queue, quota, project)
