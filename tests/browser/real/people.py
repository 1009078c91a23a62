"""Run inside a portal (`manage.py shell`): people of every role, and the cookies they come with.

Prints JSON on its last line: {name: {"cookie": ..., "token": ...}}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

ROLES = {"ada": "admin", "max": "maintainer", "mia": "member", "moe": "member", "vera": "viewer"}
PASSWORD = "correct horse battery"


def make_people() -> None:
    """Create users of ROLES in project `rl`; sam, who administers another; lou, who has none."""
    from jobs.models import Membership, Project, User

    rl = Project.objects.create(slug="rl", name="Reinforcement learning")
    other = Project.objects.create(slug="other", name="Another team")
    for name, role in ROLES.items():
        user = User.objects.create_user(name, password=PASSWORD)
        Membership.objects.create(project=rl, user=user, role=role)
    sam = User.objects.create_user("sam", password=PASSWORD)
    Membership.objects.create(project=other, user=sam, role="admin")
    User.objects.create_user("lou", password=PASSWORD)
    keys = {name: _keys_of(name) for name in [*ROLES, "sam", "lou"]}
    sys.stdout.write(json.dumps(keys) + "\n")


def _keys_of(name: str) -> dict[str, Any]:
    from jobs.actions.accounts.tokens import create_token
    from jobs.models import User
    from jobs.permissions import Actor

    user = User.objects.get(username=name)
    _, secret = create_token(Actor(user), "tests")
    return {"cookie": _session_of(user), "token": secret}


def _session_of(user: Any) -> dict[str, str]:
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

    from jobs.models.user_session import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return {"name": settings.SESSION_COOKIE_NAME, "value": session.session_key or ""}
