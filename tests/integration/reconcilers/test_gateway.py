"""Gateway sessions that end without their users: unused, lost, with their attempt or rights."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from jobs.actions.attempts.open_gateway import open_session
from jobs.ground import clock
from jobs.models import Attempt, GatewaySession, Membership, Project, User
from jobs.permissions import Actor
from jobs.reconcilers import gateway
from jobs.statuses import GatewayState, JobKind, JobStatus, Role
from tests.factories import make_attempt, make_job, make_member, make_project, make_token

pytestmark = pytest.mark.django_db
Change = Callable[[GatewaySession], object]


@pytest.fixture
def session() -> GatewaySession:
    """Open a session by token, and connect it."""
    project = make_project(laptops_may_attach=True)
    user = make_member(project)
    fields = {"status": JobStatus.RUNNING, "kind": JobKind.MONARCH}
    job = make_job(project, submitted_by=user, **fields)
    make_attempt(job)
    session, _ = open_session(Actor(user, make_token(user)[0]), job)
    GatewaySession.objects.update(state=GatewayState.OPEN, seen_at=clock.now())
    return session


def seen(seconds: float, state: GatewayState = GatewayState.AWAY) -> Change:
    """Return a change: last connected so many seconds ago."""

    def change(_session: GatewaySession) -> object:
        at = clock.now() - timedelta(seconds=seconds)
        return GatewaySession.objects.update(seen_at=at, state=state)

    return change


def unused(seconds: float) -> Change:
    """Return a change: opened so many seconds ago, and never connected."""

    def change(_session: GatewaySession) -> object:
        at = clock.now() - timedelta(seconds=seconds)
        opening = GatewayState.OPENING
        return GatewaySession.objects.update(seen_at=None, created_at=at, state=opening)

    return change


def end_attempt(_session: GatewaySession) -> object:
    return Attempt.objects.update(ended_at=clock.now())


def revoke_token(session: GatewaySession) -> object:
    session.token.revoked_at = clock.now()
    return session.token.save()


def lose_role(_session: GatewaySession) -> object:
    return Membership.objects.update(role=Role.VIEWER)


def leave_project(_session: GatewaySession) -> object:
    return Membership.objects.all().delete()


def be_deactivated(session: GatewaySession) -> object:
    return User.objects.filter(pk=session.user_id).update(is_active=False)


def forbid_laptops(_session: GatewaySession) -> object:
    return Project.objects.update(laptops_may_attach=False)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (seen(1, GatewayState.OPEN), GatewayState.OPEN),
        (seen(11, GatewayState.OPEN), GatewayState.AWAY),
        (seen(299), GatewayState.AWAY),
        (seen(301), GatewayState.LOST),
        (unused(59), GatewayState.OPENING),
        (unused(61), GatewayState.CLOSED),
        (end_attempt, GatewayState.CLOSED),
        (revoke_token, GatewayState.CLOSED),
        (lose_role, GatewayState.CLOSED),
        (leave_project, GatewayState.CLOSED),
        (be_deactivated, GatewayState.CLOSED),
        (forbid_laptops, GatewayState.CLOSED),
    ],
)
def test_a_session_goes_on_as_long_as_it_is_used_and_allowed(
    session: GatewaySession, change: Change, state: GatewayState
) -> None:
    change(session)
    for session_id in gateway.due():
        gateway.step(session_id)
    session.refresh_from_db()
    assert session.state == state
    assert bool(session.reason) == (session.ended_at is not None) == (state in {"closed", "lost"})
