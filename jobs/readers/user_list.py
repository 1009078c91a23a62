"""The users of the installation, and the sessions of one user."""

from __future__ import annotations

from django.db.models import Count, Max, Q, QuerySet

from jobs.ground import clock
from jobs.models import User, UserSession
from jobs.permissions import Actor, require_sessions, require_users, user_for
from monarch_client.wire import users as wire
from monarch_client.wire.page import Page

PAGE = 100
STATES = ("all", "active", "disabled")


def user_list(
    actor: Actor, *, search: str = "", state: str = "all", after: str = "", limit: int = PAGE
) -> Page[wire.User]:
    """List users by name, from the one behind `after`; `search` is a part of the name."""
    require_users(actor)
    found = User.objects.filter(username__icontains=search, username__gt=after)
    if state != "all":
        found = found.filter(is_active=state == "active")
    rows = [_view(user) for user in _with_numbers(found).order_by("username")[: limit + 1]]
    more = rows[limit - 1].username if len(rows) > limit else None
    return Page(results=rows[:limit], next=more, previous=None)


def user_view(actor: Actor, username: str) -> wire.User:
    """Return one user. NotFoundError: there is none."""
    require_users(actor)
    user = user_for(username, actor)
    return _view(_with_numbers(User.objects.filter(pk=user.pk)).get())


def session_list(actor: Actor, username: str, current: str | None = None) -> list[wire.Session]:
    """List the browsers in which a user is signed in, the newest first.

    `current` is the key of the session of this request.
    """
    user = user_for(username, actor)
    require_sessions(actor, user)
    open_now = UserSession.objects.filter(user=user, expire_date__gt=clock.now())
    return [
        wire.Session(
            id=row.public_id,
            signed_in_at=row.signed_in_at,
            expires_at=row.expire_date,
            address=row.address,
            browser=row.browser,
            is_current=row.pk == current,
        )
        for row in open_now.order_by("-expire_date", "pk")
    ]


def _with_numbers(found: QuerySet[User]) -> QuerySet[User]:
    now = clock.now()
    is_open = Q(signinlink__used_at=None, signinlink__expires_at__gt=now)
    return found.annotate(
        open_sessions=Count(
            "usersession", filter=Q(usersession__expire_date__gt=now), distinct=True
        ),
        link_expires_at=Max("signinlink__expires_at", filter=is_open),
    ).prefetch_related("memberships__project")


def _view(user: User) -> wire.User:
    numbers = vars(user)  # of the annotations
    return wire.User(
        username=user.get_username(),
        is_active=user.is_active,
        is_admin=user.is_superuser,
        has_password=user.has_usable_password(),
        created_at=user.date_joined,
        last_sign_in_at=user.last_login,
        link_expires_at=numbers["link_expires_at"],
        sessions=numbers["open_sessions"],
        projects=sorted(
            (
                wire.ProjectRole(project=row.project.slug, role=row.role)
                for row in user.memberships.all()
                if row.project.deleted_at is None
            ),
            key=lambda row: row.project,
        ),
    )
