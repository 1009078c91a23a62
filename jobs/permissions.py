"""Permissions: the one matrix of roles and verbs, and the only ways to reach a project or a job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from django.db.models import QuerySet

from jobs.errors import NotFoundError, PermissionDeniedError
from jobs.models import (
    ApiToken,
    Attempt,
    Cluster,
    GatewaySession,
    Job,
    Membership,
    Project,
    Schedule,
    User,
)
from jobs.models.project import ProjectQuerySet
from jobs.statuses import ProjectState, Role


class Verb(Enum):
    """An operation in a project that a role may allow."""

    VIEW_PROJECT = "view the project"
    SUBMIT_JOB = "submit jobs"
    RERUN_JOB = "rerun jobs"
    UPLOAD = "upload folders"
    CANCEL_OWN_JOB = "cancel your own jobs"
    CANCEL_ANY_JOB = "cancel others' jobs"
    HOLD_OWN_JOB = "hold and release your own jobs"
    HOLD_ANY_JOB = "hold and release others' jobs"
    PRIORITIZE_OWN_JOB = "change the priority of your own jobs"
    PRIORITIZE_ANY_JOB = "change the priority of others' jobs"
    EXTEND_OWN_JOB = "extend your own jobs"
    EXTEND_ANY_JOB = "extend others' jobs"
    LABEL_JOB = "label jobs, set their notes and save views"
    DUMP_OWN_STACKS = "dump the stacks of your own jobs"
    DUMP_ANY_STACKS = "dump the stacks of others' jobs"
    ATTACH_TO_OWN_JOB = "attach programs to your own jobs"
    ATTACH_TO_ANY_JOB = "attach programs to others' jobs"
    DELETE_JOB = "delete jobs"
    MANAGE_OWN_CLUSTERS = "manage clusters that your own jobs made"
    MANAGE_CLUSTERS = "manage clusters"
    MANAGE_OWN_SCHEDULES = "make and change your own schedules"
    MANAGE_SCHEDULES = "change others' schedules"
    MANAGE_TEMPLATES = "save and delete templates"
    LIST_SECRETS = "see the names of secrets"
    MANAGE_SECRETS = "set and delete secrets"
    MANAGE_MEMBERS = "manage members"
    MANAGE_PROJECT = "rename, archive or delete the project"


_ROLES_IN_ORDER = (Role.VIEWER, Role.MEMBER, Role.MAINTAINER, Role.ADMIN)

# The least role that may use the verb; every higher role may as well.
LEAST_ROLE: dict[Verb, Role] = {
    Verb.VIEW_PROJECT: Role.VIEWER,
    Verb.SUBMIT_JOB: Role.MEMBER,
    Verb.RERUN_JOB: Role.MEMBER,
    Verb.UPLOAD: Role.MEMBER,
    Verb.CANCEL_OWN_JOB: Role.MEMBER,
    Verb.CANCEL_ANY_JOB: Role.MAINTAINER,
    Verb.HOLD_OWN_JOB: Role.MEMBER,
    Verb.HOLD_ANY_JOB: Role.MAINTAINER,
    Verb.PRIORITIZE_OWN_JOB: Role.MEMBER,
    Verb.PRIORITIZE_ANY_JOB: Role.MAINTAINER,
    Verb.EXTEND_OWN_JOB: Role.MEMBER,
    Verb.EXTEND_ANY_JOB: Role.MAINTAINER,
    Verb.LABEL_JOB: Role.MEMBER,
    Verb.DUMP_OWN_STACKS: Role.MEMBER,
    Verb.DUMP_ANY_STACKS: Role.MAINTAINER,
    Verb.ATTACH_TO_OWN_JOB: Role.MEMBER,
    Verb.ATTACH_TO_ANY_JOB: Role.MAINTAINER,
    Verb.DELETE_JOB: Role.MAINTAINER,
    Verb.MANAGE_OWN_CLUSTERS: Role.MEMBER,
    Verb.MANAGE_CLUSTERS: Role.MAINTAINER,
    Verb.MANAGE_OWN_SCHEDULES: Role.MEMBER,
    Verb.MANAGE_SCHEDULES: Role.MAINTAINER,
    Verb.MANAGE_TEMPLATES: Role.MAINTAINER,
    Verb.LIST_SECRETS: Role.MEMBER,
    Verb.MANAGE_SECRETS: Role.MAINTAINER,
    Verb.MANAGE_MEMBERS: Role.ADMIN,
    Verb.MANAGE_PROJECT: Role.ADMIN,
}


# All that the program of a job may do: in its own project, and to its child jobs only.
DRIVER_VERBS = frozenset({Verb.VIEW_PROJECT, Verb.SUBMIT_JOB, Verb.UPLOAD, Verb.CANCEL_OWN_JOB})

# Operations that an archived project still allows.
VERBS_OF_STATE: dict[ProjectState, frozenset[Verb]] = {
    ProjectState.ACTIVE: frozenset(Verb),
    ProjectState.ARCHIVED: frozenset(
        {Verb.VIEW_PROJECT, Verb.LIST_SECRETS, Verb.MANAGE_MEMBERS, Verb.MANAGE_PROJECT}
    ),
    ProjectState.DELETED: frozenset({Verb.VIEW_PROJECT}),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a request: the user, their token or the digest of their browser's session.

    `driver` is the attempt whose program acts in its submitter's name, with its own token.
    """

    user: User
    token: ApiToken | None = None
    source: str = ""
    driver: Attempt | None = None
    browser: str = ""

    @property
    def only_project_id(self) -> int | None:
        """The project that the token is bound to; None if it reaches all of the user's projects."""
        if self.driver is not None:
            return self.driver.job.project_id
        return None if self.token is None else self.token.project_id

    @property
    def is_installation_admin(self) -> bool:
        """Whether the actor administers the whole installation."""
        return bool(self.user.is_superuser)

    @property
    def reaches_beyond_projects(self) -> bool:
        """Whether the actor administers what belongs to no project, by a token bound to none."""
        bound = self.only_project_id is not None
        return self.is_installation_admin and self.user.is_active and not bound


def role_allows(role: Role, verb: Verb) -> bool:
    """Whether the matrix lets `role` do `verb`."""
    return _ROLES_IN_ORDER.index(role) >= _ROLES_IN_ORDER.index(LEAST_ROLE[verb])


def role_in(actor: Actor, project: Project) -> Role | None:
    """Return the actor's role in `project`; None if the actor may not see it."""
    if not actor.user.is_active or not _reaches(actor, project):
        return None
    if actor.is_installation_admin:
        return Role.ADMIN
    membership = Membership.objects.filter(user=actor.user, project=project).first()
    return Role(membership.role) if membership else None


def verbs_of(actor: Actor, project: Project) -> frozenset[Verb]:
    """Return the verbs that `actor` may use in `project`."""
    role = role_in(actor, project)
    if role is None:
        return frozenset()
    open_verbs = VERBS_OF_STATE[project.state]
    allowed = frozenset(verb for verb in open_verbs if role_allows(role, verb))
    if actor.driver is not None:
        return allowed & DRIVER_VERBS
    if actor.token is not None and actor.token.read_only:
        return allowed & {Verb.VIEW_PROJECT}
    return allowed


def may(actor: Actor, verb: Verb, project: Project) -> bool:
    """Whether `actor` may do `verb` in `project`."""
    return verb in verbs_of(actor, project)


def require(actor: Actor, verb: Verb, project: Project) -> None:
    """Raise PermissionDeniedError if `actor` may not do `verb`, with the role or token needed."""
    if may(actor, verb, project):
        return
    role = role_in(actor, project)
    if role is not None:
        require_open(project, verb)
    if role is not None and role_allows(role, verb) and actor.driver is not None:
        why = "the token of a job's program submits, sees and cancels its child jobs only."
    elif role is not None and role_allows(role, verb):
        why = "this token may only read. Use one that may write."
    else:
        why = f"this takes the role {LEAST_ROLE[verb].value}. Ask one of its admins."
    raise PermissionDeniedError(
        f"You may not {verb.value} in project {project.slug}: {why}", verb=verb.name
    )


def require_open(project: Project, verb: Verb) -> None:
    """Raise PermissionDeniedError if the project's state forbids `verb` to every actor."""
    if verb in VERBS_OF_STATE[project.state]:
        return
    what = f"You may not {verb.value} in project {project.slug}: it is {project.state.value}"
    hint = ". One of its admins can unarchive it." if project.deleted_at is None else "."
    raise PermissionDeniedError(what + hint, verb=verb.name)


def require_clouds(actor: Actor | None, *, to_change: bool = False) -> None:
    """Raise PermissionDeniedError unless `actor` may see clouds, or change them if `to_change`.

    Without an actor the request is the portal's own host's, which may do both.
    """
    _require_administrator("Clouds are for", actor, to_change=to_change)


def require_users(actor: Actor, *, to_change: bool = False) -> None:
    """Raise PermissionDeniedError unless `actor` may see users, or change them if `to_change`."""
    _require_administrator("Users are for", actor, to_change=to_change)


def _require_administrator(what: str, actor: Actor | None, *, to_change: bool) -> None:
    if actor is None:
        return
    if not (may_change_installation(actor) if to_change else actor.reaches_beyond_projects):
        # A browser has no token: its user is no administrator.
        is_program = actor.token is not None or actor.driver is not None
        writes = " and may write" if to_change else ""
        token = f", with a token that reaches all projects{writes}" if is_program else ""
        raise PermissionDeniedError(f"{what} administrators of this installation{token}.")


def require_token_reach(actor: Actor, grant: ApiToken | None = None) -> None:
    """Raise PermissionDeniedError if `grant` has access beyond that of the actor's token.

    Without `grant` the access is one without limits, such as that of a sign-in link.
    """
    if actor.token is not None and not actor.token.covers(grant or ApiToken()):
        raise PermissionDeniedError(
            "This token may not grant more or longer access than its own; sign in instead."
        )


def require_sessions(actor: Actor, user: User, *, to_change: bool = False) -> None:
    """Raise PermissionDeniedError unless `actor` may see the sessions of `user`, or end them.

    Users manage their own sessions, by a token without limits.
    """
    reads_only = actor.token is not None and actor.token.read_only
    if user.pk != actor.user.pk:
        require_users(actor, to_change=to_change)
    elif actor.only_project_id is not None or (to_change and reads_only):
        raise PermissionDeniedError("This token may not manage sessions; sign in instead.")


def user_for(username: str, actor: Actor | None = None) -> User:
    """Return the user of that name; NotFoundError if there is none.

    With an `actor`, `me` is the actor, who needs permission to see other users.
    """
    if actor is not None and username in {"me", actor.user.get_username()}:
        return User.objects.get(pk=actor.user.pk)
    if actor is not None:
        require_users(actor)
    # The database takes no NUL.
    user = None if "\0" in username else User.objects.filter(username=username).first()
    if user is None:
        raise NotFoundError(f"There is no user {username}.")
    return user


def require_sharing(actor: Actor) -> None:
    """Raise PermissionDeniedError unless `actor` may set what all projects share."""
    _require_administrator("What all projects share is set by", actor, to_change=True)


def require_budget(actor: Actor) -> None:
    """Raise PermissionDeniedError unless `actor` may set budgets."""
    _require_administrator("Budgets are set by", actor, to_change=True)


def may_change_installation(actor: Actor) -> bool:
    """Whether `actor` sets what all projects share: an administrator, by a token that may write."""
    reads_only = actor.token is not None and actor.token.read_only
    return actor.reaches_beyond_projects and not reads_only


def require_cancel(actor: Actor, job: Job) -> None:
    """Raise PermissionDeniedError unless `actor` may cancel `job`."""
    own = job.submitted_by_id == actor.user.pk
    require(actor, Verb.CANCEL_OWN_JOB if own else Verb.CANCEL_ANY_JOB, job.project)


def require_hold(actor: Actor, job: Job) -> None:
    """Raise PermissionDeniedError unless `actor` may hold `job`, or release it."""
    own = job.submitted_by_id == actor.user.pk
    require(actor, Verb.HOLD_OWN_JOB if own else Verb.HOLD_ANY_JOB, job.project)


def require_prioritize(actor: Actor, job: Job) -> None:
    """Raise PermissionDeniedError unless `actor` may set the priority of `job`."""
    own = job.submitted_by_id == actor.user.pk
    require(actor, Verb.PRIORITIZE_OWN_JOB if own else Verb.PRIORITIZE_ANY_JOB, job.project)


def require_extend(actor: Actor, job: Job) -> None:
    """Raise PermissionDeniedError unless `actor` may extend `job`."""
    own = job.submitted_by_id == actor.user.pk
    require(actor, Verb.EXTEND_OWN_JOB if own else Verb.EXTEND_ANY_JOB, job.project)


def require_stacks(actor: Actor, job: Job) -> None:
    """Refuse to dump the stacks of `job` unless `actor` may; all who see it may read dumps."""
    require(actor, stacks_verb(actor, job), job.project)


def stacks_verb(actor: Actor, job: Job) -> Verb:
    """Return the verb that `actor` needs to dump the stacks of `job`."""
    own = job.submitted_by_id == actor.user.pk
    return Verb.DUMP_OWN_STACKS if own else Verb.DUMP_ANY_STACKS


def require_attach(actor: Actor, job: Job) -> None:
    """Raise PermissionDeniedError unless `actor` may run code in `job` from outside."""
    own = job.submitted_by_id == actor.user.pk
    require(actor, Verb.ATTACH_TO_OWN_JOB if own else Verb.ATTACH_TO_ANY_JOB, job.project)


def verb_to_detach(actor: Actor, session: GatewaySession, job: Job) -> Verb:
    """Return the verb that `actor` needs to end a gateway session in `job`."""
    own = actor.user.pk in {session.user_id, job.submitted_by_id}
    return Verb.ATTACH_TO_OWN_JOB if own else Verb.ATTACH_TO_ANY_JOB


def require_cluster(actor: Actor, cluster: Cluster) -> None:
    """Raise PermissionDeniedError unless `actor` may manage `cluster`.

    A cluster belongs to the submitter of its first job.
    """
    first = cluster.attempts.select_related("job").order_by("pk").first()
    own = first is not None and first.job.submitted_by_id == actor.user.pk
    require(actor, Verb.MANAGE_OWN_CLUSTERS if own else Verb.MANAGE_CLUSTERS, cluster.project)


def require_schedule(actor: Actor, schedule: Schedule) -> None:
    """Raise PermissionDeniedError unless `actor` may manage `schedule`."""
    own = schedule.owner_id == actor.user.pk
    verb = Verb.MANAGE_OWN_SCHEDULES if own else Verb.MANAGE_SCHEDULES
    require(actor, verb, schedule.project)


def projects_of(actor: Actor) -> ProjectQuerySet:
    """Return the projects that `actor` can see, by slug; deleted ones only to administrators."""
    projects = Project.objects.order_by("slug")
    if not actor.reaches_beyond_projects:
        projects = projects.filter(deleted_at=None)
    if not actor.user.is_active:
        return projects.none()
    if actor.only_project_id is not None:
        projects = projects.filter(pk=actor.only_project_id)
    if actor.is_installation_admin:
        return projects
    return projects.filter(memberships__user=actor.user)


def roles_of(actor: Actor) -> dict[int, Role]:
    """Return the actor's role by project id, for all projects that the actor may see."""
    projects = projects_of(actor)
    if actor.is_installation_admin:
        return dict.fromkeys(projects.values_list("pk", flat=True), Role.ADMIN)
    memberships = Membership.objects.filter(user=actor.user, project__in=projects)
    return {row.project_id: Role(row.role) for row in memberships}


def project_for(actor: Actor, slug: str) -> Project:
    """Return the project with that slug, or else with that former slug.

    NotFoundError when there is none or the actor may not see it.
    """
    mine = projects_of(actor)
    project = mine.filter(slug=slug).first() or mine.filter(former_slugs=slug).first()
    if project is None:
        raise NotFoundError(f"There is no project {slug}, or you are not a member of it.")
    return project


def job_for(actor: Actor, slug: str, job_id: int, among: QuerySet[Job] | None = None) -> Job:
    """Return the job with its project and submitter; NotFoundError as for `project_for`."""
    jobs = jobs_of(actor, project_for(actor, slug), among)
    try:
        return jobs.select_related("project", "submitted_by").get(pk=job_id)
    except Job.DoesNotExist:
        whose = "" if actor.driver is None else f" that job {actor.driver.job_id} submitted"
        raise NotFoundError(f"There is no job {job_id} in project {slug}{whose}.") from None


def jobs_of(actor: Actor, project: Project, among: QuerySet[Job] | None = None) -> QuerySet[Job]:
    """Return the project's jobs that `actor` may see: all; for a driver, its child jobs."""
    jobs = (Job.objects.all() if among is None else among).filter(project=project)
    return jobs if actor.driver is None else jobs.filter(parent=actor.driver.job_id)


def _reaches(actor: Actor, project: Project) -> bool:
    return actor.only_project_id in {None, project.pk}
