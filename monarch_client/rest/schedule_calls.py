"""The endpoints about schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class ScheduleCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def schedules(self, project: str) -> list[wire.schedules.Schedule]:
        """List the project's schedules, by name."""
        answer = self.connection.request("GET", f"/projects/{project}/schedules")
        return decode_page(wire.schedules.Schedule, answer).results

    def schedule(self, project: str, name: str) -> wire.schedules.ScheduleDetail:
        """Return one schedule, with its specification, its next times and its last fifty."""
        return decode(
            wire.schedules.ScheduleDetail, self.connection.request("GET", _schedule(project, name))
        )

    def create_schedule(
        self, project: str, name: str, spec: str | Mapping[str, Any], cron: str, **options: Any
    ) -> wire.schedules.ScheduleDetail:
        """Make a schedule. `options`: zone, overlap, catch_up, paused.

        InvalidSpecErrors carries everything wrong with it and its specification. ConflictError:
        there is one of that name.
        """
        body = {"name": name, "spec": spec, "cron": cron, **options}
        path = f"/projects/{project}/schedules"
        return decode(
            wire.schedules.ScheduleDetail, self.connection.request("POST", path, json=body)
        )

    def change_schedule(
        self, project: str, name: str, **changes: Any
    ) -> wire.schedules.ScheduleDetail:
        """Change some of spec, cron, zone, overlap, catch_up. A new spec makes you its owner."""
        path = _schedule(project, name)
        answer = self.connection.request("PATCH", path, repeatable=True, json=changes)
        return decode(wire.schedules.ScheduleDetail, answer)

    def pause_schedule(self, project: str, name: str) -> wire.schedules.ScheduleDetail:
        """Have it submit nothing until it is resumed."""
        path = _schedule(project, name) + "/actions/pause"
        return decode(
            wire.schedules.ScheduleDetail, self.connection.request("POST", path, repeatable=True)
        )

    def resume_schedule(self, project: str, name: str) -> wire.schedules.ScheduleDetail:
        """Let it go on with its next time."""
        path = _schedule(project, name) + "/actions/resume"
        return decode(
            wire.schedules.ScheduleDetail, self.connection.request("POST", path, repeatable=True)
        )

    def run_schedule(self, project: str, name: str) -> wire.jobs.Job:
        """Submit its job at once, in its owner's name."""
        path = _schedule(project, name) + "/actions/run"
        return decode(wire.jobs.Job, self.connection.request("POST", path))

    def delete_schedule(self, project: str, name: str) -> None:
        """Remove a schedule. The jobs that it has made stay."""
        self.connection.request("DELETE", _schedule(project, name))


def _schedule(project: str, name: str) -> str:
    return f"/projects/{project}/schedules/{quote(name, safe='')}"
