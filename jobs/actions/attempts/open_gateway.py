"""Open and end gateway sessions: what people do. `gateway_streams` is what the gateway does."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.conf import settings
from django.db import transaction

from jobs.actions.jobs.history import note_action
from jobs.actions.jobs.present import keep
from jobs.audit.record import record
from jobs.errors import ConflictError, NotFoundError, TooManySessionsError
from jobs.ground import clock
from jobs.live.channel import publish_on_commit
from jobs.models import Attempt, GatewaySession, Job, User
from jobs.models.api_token import token_digest
from jobs.permissions import Actor, Verb, require, require_attach, verb_to_detach
from jobs.statuses import Carrier, GatewayKind, GatewayState, JobKind, JobStatus

TICKET_PREFIX = "mpg_"
_LONGEST_PURPOSE = 200


@dataclass(frozen=True, slots=True)
class ShellPurpose:
    """The purpose of a shell, as its user states it: the node, the command, the forwarded ports."""

    kind: ClassVar = GatewayKind.SSH
    rank: int
    command: str = ""
    forwards: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The purpose in one line."""
        parts = [f"node {self.rank}", self.command, *(f"-L {each}" for each in self.forwards)]
        return ", ".join(filter(None, parts))[:_LONGEST_PURPOSE]

    @property
    def values(self) -> dict[str, Any]:
        """The purpose as the audit log stores it."""
        given = {"command": self.command, "forwards": list(self.forwards)}
        return {"rank": self.rank} | {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class CodePurpose:
    """The purpose of `mportal sync`: it sends code to the nodes."""

    kind: ClassVar = GatewayKind.SYNC
    text: ClassVar = ""
    values: ClassVar[Mapping[str, Any]] = {}


Purpose = ShellPurpose | CodePurpose


@transaction.atomic
def open_session(
    actor: Actor, job: Job, purpose: Purpose | None = None
) -> tuple[GatewaySession, str]:
    """Create a session in the open attempt of `job`, and return it with its ticket.

    Without a purpose it is of the kind ATTACH. ConflictError: the job does not run.
    TooManySessionsError: at a limit.
    """
    require_attach(actor, job)
    # Requests for one job, and those of one user, are counted one after the other.
    keep(job)
    User.objects.select_for_update(no_key=True).get(pk=actor.user.pk)
    attempt = _attempt_of(job)
    kind = GatewayKind.ATTACH if purpose is None else purpose.kind
    refuse_unreachable(job, attempt, kind)
    _refuse_too_many(actor, job)
    ticket = new_secret()
    session = GatewaySession.objects.create(
        attempt=attempt,
        user=actor.user,
        token=actor.token,
        browser=actor.browser,
        source=actor.source[:60],
        kind=kind,
        purpose=purpose.text if purpose is not None else "",
        secret_digest=token_digest(ticket),
    )
    stated = {"kind": kind.value, **purpose.values} if purpose is not None else {}
    record(actor, "open_gateway_session", job, after={"session": session.pk, **stated})
    shown = f": {kind.value}" if purpose is not None else ""
    to = f" to {session.purpose}" if session.purpose else ""
    note_action(job, actor, "attach", f"Gateway session {session.pk} opened{shown}{to}.")
    return session, ticket


@transaction.atomic
def end_session(actor: Actor, job: Job, session_id: int) -> None:
    """End a session of `job`. NotFoundError: the job has no such session."""
    # The least that any of them takes.
    require(actor, Verb.ATTACH_TO_OWN_JOB, job.project)
    session = GatewaySession.objects.filter(attempt__job=job, pk=session_id).first()
    if session is None:
        raise NotFoundError(f"Job {job.pk} has no gateway session {session_id}.")
    require(actor, verb_to_detach(actor, session, job), job.project)
    if close_session(session, f"Ended by {actor.user.get_username()}."):
        record(actor, "end_gateway_session", job, before={"session": session.pk})
        note_action(job, actor, "detach", f"Gateway session {session.pk} ended.")


def close_session(
    session: GatewaySession, reason: str, state: GatewayState = GatewayState.CLOSED
) -> bool:
    """Whether the session was current and has ended now. The gateway then closes its streams."""
    current = GatewaySession.objects.current().filter(pk=session.pk)
    has_ended = bool(current.update(state=state, ended_at=clock.now(), reason=reason[:200]))
    if has_ended:
        publish_on_commit(session.attempt.job)
    return has_ended


def new_secret() -> str:
    """Return a new ticket or secret of a session."""
    return TICKET_PREFIX + secrets.token_urlsafe(32)


def _attempt_of(job: Job) -> Attempt:
    attempt = job.attempts.open().newest_of(job.pk, JobStatus.RUNNING)
    if attempt is None:
        job.refresh_from_db()
        raise ConflictError(
            f"Job {job.pk} is {JobStatus(job.status).label.lower()}: programs and shells attach "
            "to running jobs only."
        )
    return attempt


def why_not_reachable(job: Job, kind: GatewayKind) -> str:
    """Return why no session of this kind may or can reach `job` now; "" if one can."""
    try:
        refuse_unreachable(job, _attempt_of(job), kind)
    except ConflictError as error:
        return error.message
    return ""


def refuse_unreachable(job: Job, attempt: Attempt, kind: GatewayKind) -> None:
    """Raise ConflictError if no session of this kind may or can reach `job`."""
    if job.kind != JobKind.MONARCH and kind == GatewayKind.ATTACH:
        raise ConflictError(
            f"Job {job.pk} is a plain job: programs attach to the workers of Monarch jobs. For a "
            f"shell on its nodes, run: mportal ssh {job.pk}"
        )
    if not job.request.waits_for_laptops and not job.project.laptops_may_attach:
        raise ConflictError(
            f"Project {job.project.slug} does not allow shells, and programs of laptops, in jobs "
            "that have a program of their own. An admin of the project can allow them under "
            "Settings, Policies. A job of `mportal dev` needs no such permission."
        )
    if attempt.carrier == Carrier.PULL:
        raise ConflictError(
            f"The nodes of job {job.pk} do not reach this portal, so neither programs nor "
            "shells can reach them through it."
        )


def _refuse_too_many(actor: Actor, job: Job) -> None:
    current = GatewaySession.objects.current()
    of_job, of_user = settings.MPORTAL_GATEWAY_PER_JOB, settings.MPORTAL_GATEWAY_PER_USER
    if current.filter(attempt__job=job).count() >= of_job:
        raise TooManySessionsError(
            f"Job {job.pk} has {of_job} gateway sessions, the most of one job. "
            f"End one; list them with: mportal sessions {job.pk} --project {job.project.slug}"
        )
    own = list(current.filter(user=actor.user).select_related("attempt__job__project"))
    if len(own) >= of_user:
        # Those that are not connected come first: they are the likeliest to be given up.
        own.sort(key=lambda each: (each.state == GatewayState.OPEN, each.pk))
        listed = ", ".join(f"{each.pk} (job {each.attempt.job_id}, {each.state})" for each in own)
        first = own[0].attempt.job
        raise TooManySessionsError(
            f"You have {of_user} gateway sessions, the most of one user: {listed}. End one, such "
            f"as: mportal sessions {first.pk} --project {first.project.slug} --end {own[0].pk}"
        )
