"""The existing clusters with owner, age and cost: clusters with a row, and strays."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Prefetch, QuerySet, Sum

from jobs.errors import NotFoundError
from jobs.limits import idle_limit
from jobs.models import Attempt, Cluster, Project, StrayCluster
from jobs.permissions import Actor, Verb, projects_of, require, verbs_of
from jobs.policies.idle import IdlePolicy, Kept, idle_end
from jobs.readers.gpu_use import gpu_use_view
from jobs.statuses import ClusterStatus, StrayKind
from monarch_client.wire import clusters as wire

ROW = "row"


def cluster_list(actor: Actor, project: Project | None = None) -> list[wire.Cluster]:
    """List the existing clusters of one project or of all that the actor sees; newest first.

    Without a project an administrator of the installation sees strays as well.
    """
    if project is not None:
        require(actor, Verb.VIEW_PROJECT, project)
    projects = projects_of(actor) if project is None else [project]
    rights = {each.pk: verbs_of(actor, each) for each in projects}
    clusters = _with_jobs(Cluster.objects.existing().filter(project__in=rights))
    rows = [
        _row(cluster, may_manage=_manages(actor, cluster, rights[cluster.project_id]))
        for cluster in clusters.order_by("-pk")
    ]
    if project is None and actor.reaches_beyond_projects:
        strays = StrayCluster.objects.order_by("-kind", "name")
        rows += [stray_row(actor, stray) for stray in strays]
    return rows


def cluster_named(actor: Actor, project: Project, name: str) -> Cluster:
    """Return the project's cluster of that name. NotFoundError: there is none."""
    require(actor, Verb.VIEW_PROJECT, project)
    cluster = Cluster.objects.filter(project=project, name=name.replace("\0", "")).first()
    if cluster is None:
        raise NotFoundError(f"There is no cluster {name} in project {project.slug}.")
    return cluster


def cluster_anywhere(actor: Actor, name: str) -> Cluster | None:
    """Return the cluster of that name in any project that the actor sees."""
    projects = projects_of(actor)
    return Cluster.objects.filter(project__in=projects, name=name.replace("\0", "")).first()


def cluster_row(actor: Actor, cluster: Cluster) -> wire.Cluster:
    """Return one cluster as the list shows it; also one that no longer exists."""
    row = _with_jobs(Cluster.objects.filter(pk=cluster.pk)).get()
    return _row(row, may_manage=_manages(actor, row, verbs_of(actor, cluster.project)))


def stray_row(actor: Actor, stray: StrayCluster) -> wire.Cluster:
    """Return a stray cluster as the list shows it."""
    return _stray(stray, may_write=actor.token is None or not actor.token.read_only)


def ssh_command(cluster: Cluster | None, rank: int) -> str:
    """Return the command to reach a node for users of this cluster's SkyPilot; "" elsewhere."""
    if cluster is None or cluster.backend_name != "skypilot":
        return ""
    if cluster.status not in {ClusterStatus.STARTING, ClusterStatus.UP}:
        return ""
    return f"ssh {cluster.name}" + (f"-worker{rank}" if rank else "")


def _with_jobs(clusters: QuerySet[Cluster]) -> QuerySet[Cluster]:
    newest_first = Attempt.objects.select_related("job__submitted_by", "gpu_use")
    newest_first = newest_first.defer("job__spec", "job__spec_source").order_by("-pk")
    return (
        clusters.select_related("project")
        .annotate(paid=Sum("attempts__usd"))
        .prefetch_related(Prefetch("attempts", newest_first))
    )


def _manages(actor: Actor, cluster: Cluster, verbs: frozenset[Verb]) -> bool:
    """Whether `require_cluster` lets the actor manage a cluster read through `_with_jobs`."""
    oldest = list(cluster.attempts.all())[-1:]
    own = any(attempt.job.submitted_by_id == actor.user.pk for attempt in oldest)
    return (Verb.MANAGE_OWN_CLUSTERS if own else Verb.MANAGE_CLUSTERS) in verbs


def _row(cluster: Cluster, *, may_manage: bool) -> wire.Cluster:
    attempts = list(cluster.attempts.all())
    job = attempts[0].job if attempts else None
    is_busy = any(attempt.ended_at is None for attempt in attempts)
    usd = cluster.usd
    paid: Decimal = getattr(cluster, "paid", None) or Decimal(0)
    is_released = cluster.release_requested_at is not None
    # Without a job, one that is not kept for the next is about to be released.
    is_ending = not is_busy and (is_released or not cluster.is_reusable)
    status = ClusterStatus.STOPPING if is_ending else ClusterStatus(cluster.status)
    idle_until = None if is_busy or is_released else _idle_until(cluster)
    use = getattr(attempts[0], "gpu_use", None) if is_busy else None
    return wire.Cluster(
        name=cluster.name,
        kind=ROW,
        project=cluster.project.slug,
        backend=cluster.backend_name,
        status=status,
        status_label=status.label,
        note=cluster.backend_status,
        job=job.pk if job else None,
        job_name=job.name if job else "",
        is_busy=is_busy,
        infra=cluster.infra,
        resources=cluster.resources,
        num_nodes=cluster.num_nodes,
        gpu_type=cluster.gpu_type,
        gpu_count=cluster.gpu_count,
        gpu_use=gpu_use_view(use, is_on=True) if use else None,
        submitted_by=job.submitted_by.get_username() if job else "",
        since=cluster.created_at,
        idle_since=None if is_busy else cluster.idle_since,
        idle_until=idle_until,
        idle_then=IdlePolicy.from_dict(cluster.idle_policy).then if idle_until else "",
        # A stopped cluster costs its disks alone, and no backend reports how much.
        usd_per_hour=None if cluster.status == ClusterStatus.STOPPED else cluster.usd_per_hour,
        usd=usd,
        idle_usd=None if usd is None else max(Decimal(0), usd - paid),
        owner="",
        can_down=may_manage and not is_busy and not is_ending,
        can_extend=may_manage and idle_until is not None,
        can_stop=may_manage and idle_until is not None,
        ssh=ssh_command(cluster, 0),
    )


def _idle_until(cluster: Cluster) -> datetime | None:
    if cluster.idle_since is None or cluster.status != ClusterStatus.UP:
        return None
    policy = IdlePolicy.from_dict(cluster.idle_policy)
    return idle_end(Kept(cluster.idle_since, policy), idle_limit(cluster.project))


def _stray(row: StrayCluster, *, may_write: bool) -> wire.Cluster:
    seen: dict[str, Any] = row.seen
    price, began, by = seen.get("usd_per_hour"), seen.get("launched_at"), row.ordered_by
    return wire.Cluster(
        name=row.name,
        kind=row.kind,
        project="",
        backend=row.backend_name,
        status=str(seen.get("status") or ""),
        status_label=str(seen.get("status") or "Unknown"),
        note=f"{by} has it taken down." if by else StrayKind(row.kind).label,
        job=None,
        job_name="",
        is_busy=False,
        infra=str(seen.get("infra") or ""),
        resources=str(seen.get("resources") or ""),
        num_nodes=int(seen.get("num_nodes") or 0),
        gpu_type="",
        gpu_count=0,
        gpu_use=None,
        submitted_by="",
        since=datetime.fromisoformat(began) if began else row.first_seen_at,
        idle_since=None,
        idle_until=None,
        idle_then="",
        usd_per_hour=None if price is None else Decimal(price),
        usd=None,
        idle_usd=None,
        owner=str(seen.get("owner") or ""),
        can_down=may_write and row.kind == StrayKind.OWN and not by,
        can_extend=False,
        can_stop=False,
        ssh="",
    )
