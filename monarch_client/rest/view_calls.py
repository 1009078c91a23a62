"""The endpoints about saved views of the job table."""

from __future__ import annotations

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class ViewCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def views(self, project: str) -> list[wire.views.SavedView]:
        """List your views of the job table, and those that others share, by name."""
        answer = self.connection.request("GET", f"/projects/{project}/views")
        return decode_page(wire.views.SavedView, answer).results

    def save_view(
        self, project: str, name: str, query: str, *, shared: bool = False
    ) -> wire.views.SavedView:
        """Save a query such as `status=FAILED&since=24h`; replaces your view of this name."""
        body = {"name": name, "query": query, "shared": shared}
        path = f"/projects/{project}/views"
        answer = self.connection.request("POST", path, repeatable=True, json=body)
        return decode(wire.views.SavedView, answer)

    def delete_view(self, project: str, view_id: int) -> None:
        """Delete a view."""
        self.connection.request("DELETE", f"/projects/{project}/views/{view_id}")
