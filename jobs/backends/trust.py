"""The certificate authority of one attempt, as the client makes it; the portal keeps neither."""

from __future__ import annotations

from monarch_client.skypilot.trust import Authority, new_authority

__all__ = ["Authority", "new_authority"]
