"""Rights that were lost: pages, streams and gateway sessions that depend on them end at once."""

from __future__ import annotations

from jobs.background.hints import wake_on_commit
from jobs.live.channel import publish_rights_on_commit


def check_rights_on_commit(user_id: int) -> None:
    """Have everything that hangs on the rights, sessions or tokens of a user checked after commit.

    Without the hints it is checked some seconds later.
    """
    publish_rights_on_commit(user_id)
    wake_on_commit("gateway")
