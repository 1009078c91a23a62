"""The portal from Python: `PortalClient`, one method an endpoint, and `Follower` for live logs."""

from monarch_client.rest.client import PortalClient
from monarch_client.rest.stream import Changed, Disconnected, Follower, NewLines

__all__ = ["Changed", "Disconnected", "Follower", "NewLines", "PortalClient"]
