"""The portal's REST interface, one method an endpoint. Following a log is in `stream`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import quote

import httpx

from monarch_client import wire
from monarch_client.errors import MissingError, NotSignedInError
from monarch_client.rest.array_calls import ArrayCalls
from monarch_client.rest.bodies import rerun_body, spec_body
from monarch_client.rest.bulk_calls import BulkCalls
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_log, decode_page
from monarch_client.rest.gateway_calls import GatewayCalls
from monarch_client.rest.machine_calls import MachineCalls
from monarch_client.rest.project_calls import ProjectCalls
from monarch_client.rest.queue_calls import QueueCalls
from monarch_client.rest.run_calls import RunCalls
from monarch_client.rest.schedule_calls import ScheduleCalls
from monarch_client.rest.template_calls import TemplateCalls
from monarch_client.rest.user_calls import UserCalls
from monarch_client.rest.view_calls import ViewCalls

# Packing is quick to send, slow to check: an upload may take its time to be answered.
UPLOAD_TIMEOUT_S = 600.0
ARCHIVE_TYPE = "application/gzip"


class PortalClient(
    ArrayCalls,
    BulkCalls,
    GatewayCalls,
    MachineCalls,
    ProjectCalls,
    QueueCalls,
    RunCalls,
    ScheduleCalls,
    UserCalls,
    TemplateCalls,
    ViewCalls,
):
    """One user of one portal. `options` are those of `Connection`."""

    def __init__(self, url: str, token: str, **options: Any) -> None:
        self.connection = Connection(url, token, **options)

    @classmethod
    def from_environment(cls, **options: Any) -> PortalClient:
        """Make a client of the portal that MPORTAL_URL and MPORTAL_TOKEN name.

        In a job they name the job's own portal, for the submission of child jobs.
        """
        url, token = (os.environ.get(name, "").strip() for name in ("MPORTAL_URL", "MPORTAL_TOKEN"))
        if not url or not token:
            raise NotSignedInError("Set MPORTAL_URL and MPORTAL_TOKEN; jobs find them set.")
        return cls(url, token, **options)

    def __enter__(self) -> PortalClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.close()

    def me(self) -> wire.account.Me:
        """Return the user that the token belongs to."""
        return decode(wire.account.Me, self.connection.request("GET", "/me"))

    def jobs(
        self, project: str, *, status: Sequence[str] = (), **filters: Any
    ) -> wire.page.Page[wire.jobs.Job]:
        """List jobs, newest first unless `sort` or `pin` is given.

        `filters`: user ("me" or a name), name, kind, gpu, queue, backend, reason, label, since,
        until, parent, q, sort, pin, limit.
        """
        params = given({"status": ",".join(status), **filters})
        answer = self.connection.request("GET", f"/projects/{project}/jobs", params=params)
        return decode_page(wire.jobs.Job, answer)

    def submit(
        self,
        project: str,
        spec: str | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> wire.jobs.Job:
        """Submit YAML text or an object. InvalidSpecErrors carries everything wrong with it.

        Repeated while the portal is away; the key ensures that this makes one job.
        """
        headers = {"Idempotency-Key": idempotency_key or _new_key()}
        answer = self.connection.request(
            "POST", f"/projects/{project}/jobs", repeatable=True, **spec_body(spec, headers)
        )
        return decode(wire.jobs.Job, answer)

    def validate(self, project: str, spec: str | Mapping[str, Any]) -> wire.jobs.Validation:
        """Validate a specification as a submission would; nothing is stored."""
        answer = self.connection.request(
            "POST", f"/projects/{project}/jobs/validate", repeatable=True, **spec_body(spec)
        )
        return decode(wire.jobs.Validation, answer)

    def job(self, project: str, job_id: int) -> wire.jobs.JobDetail:
        """Return one job with its specification."""
        return decode(wire.jobs.JobDetail, self.connection.request("GET", _job(project, job_id)))

    def annotate(
        self,
        project: str,
        job_id: int,
        *,
        labels: Mapping[str, str | None] | None = None,
        note: str | None = None,
    ) -> wire.jobs.Job:
        """Change labels of a job, or its note. A label of None is removed; others stay."""
        values = {"labels": None if labels is None else dict(labels), "note": note}
        body = {name: value for name, value in values.items() if value is not None}
        answer = self.connection.request("PATCH", _job(project, job_id), repeatable=True, json=body)
        return decode(wire.jobs.Job, answer)

    def cancel(self, project: str, job_id: int) -> wire.jobs.Job:
        """End a job. ConflictError when it has ended already."""
        path = _job(project, job_id) + "/actions/cancel"
        return decode(wire.jobs.Job, self.connection.request("POST", path, repeatable=True))

    def hold(self, project: str, job_id: int) -> wire.jobs.Job:
        """Keep a queued job from starting. ConflictError when it has started or ended."""
        path = _job(project, job_id) + "/actions/hold"
        return decode(wire.jobs.Job, self.connection.request("POST", path, repeatable=True))

    def release(self, project: str, job_id: int) -> wire.jobs.Job:
        """Release a held job, so that it may start. ConflictError when it has ended."""
        path = _job(project, job_id) + "/actions/release"
        return decode(wire.jobs.Job, self.connection.request("POST", path, repeatable=True))

    def prioritize(self, project: str, job_id: int, priority: int) -> wire.jobs.Job:
        """Change a queued job's priority, 0 to 100. ConflictError when it has started or ended."""
        path = _job(project, job_id) + "/actions/prioritize"
        body = {"priority": priority}
        return decode(
            wire.jobs.Job, self.connection.request("POST", path, repeatable=True, json=body)
        )

    def extend(self, project: str, job_id: int, duration: str | int) -> wire.jobs.Job:
        """Let a job run longer, by "2h" or seconds. ConflictError where that can't be."""
        key = "duration" if isinstance(duration, str) else "seconds"
        path, headers = _job(project, job_id) + "/actions/extend", {"Idempotency-Key": _new_key()}
        return decode(
            wire.jobs.Job,
            self.connection.request(
                "POST", path, repeatable=True, json={key: duration}, headers=headers
            ),
        )

    def rerun(self, project: str, job_id: int, *, drop_deleted: bool = False) -> wire.jobs.Job:
        """Submit a new job from the same specification.

        `drop_deleted` leaves out dependencies on jobs that were deleted.
        """
        path = _job(project, job_id) + "/actions/rerun"
        body, headers = rerun_body(drop_deleted=drop_deleted), {"Idempotency-Key": _new_key()}
        return decode(
            wire.jobs.Job,
            self.connection.request("POST", path, repeatable=True, json=body, headers=headers),
        )

    def delete(self, project: str, job_id: int) -> None:
        """Remove an ended job with everything it left."""
        self.connection.request("DELETE", _job(project, job_id))

    def attempts(
        self, project: str, job_id: int, *, workers: str = "all"
    ) -> list[wire.attempts.Attempt]:
        """List the job's attempts with stages and workers, newest first.

        `workers`: "all", "newest" or "none", for callers that need no lists of a thousand hosts.
        """
        path, params = _job(project, job_id) + "/attempts", {"workers": workers}
        answer = self.connection.request("GET", path, params=params)
        return decode_page(wire.attempts.Attempt, answer).results

    def graph(self, project: str, job_id: int) -> wire.graph.JobGraph:
        """Return the jobs that dependencies connect with the job, and these dependencies."""
        answer = self.connection.request("GET", _job(project, job_id) + "/graph")
        return decode(wire.graph.JobGraph, answer)

    def events(
        self, project: str, job_id: int, *, after: int | str = 0, limit: int = 200
    ) -> wire.page.Page[wire.jobs.Event]:
        """Return the job's history, oldest first. `next` is the `after` of the next page."""
        path, params = _job(project, job_id) + "/events", {"after": after, "limit": limit}
        return decode_page(wire.jobs.Event, self.connection.request("GET", path, params=params))

    def logs(
        self, project: str, job_id: int, **options: Any
    ) -> wire.logs.LogPage[wire.logs.LogLine]:
        """Return lines of the log. `options`: attempt, rank, stream, after, before, limit.

        `before="end"` gives the last lines; `next` goes into `after`, `previous` into `before`.
        """
        path = _job(project, job_id) + "/logs"
        answer = self.connection.request("GET", path, params=given(options))
        return decode_log(wire.logs.LogLine, answer)

    def search_log(
        self, project: str, job_id: int, q: str, **options: Any
    ) -> wire.logs.LogPage[wire.logs.LogLine]:
        """Return the lines of the log that match `q`.

        `options`: regex, case, attempt, rank, stream, since, until (ISO times), after, limit.

        One answer looks at a bounded stretch: while it has a `next`, go on with that as `after`.
        """
        path = _job(project, job_id) + "/logs/search"
        answer = self.connection.request("GET", path, params=given({"q": q, **options}))
        return decode_log(wire.logs.LogLine, answer)

    def download_log(self, project: str, job_id: int, **options: Any) -> Iterator[bytes]:
        """Download the whole log as text, piece by piece."""
        query = str(httpx.QueryParams(given(options)))
        path = f"{_job(project, job_id)}/logs/download?{query}".rstrip("?")
        with self.connection.stream(path, headers={}, read_timeout_s=60.0) as response:
            yield from response.iter_bytes()

    def has_upload(self, project: str, digest: str) -> bool:
        """Whether the project has this content already."""
        try:
            self.connection.request("GET", f"/projects/{project}/uploads/{digest}")
        except MissingError:
            return False
        return True

    def upload(self, project: str, archive: Path) -> wire.jobs.Upload:
        """Send a tar.gz. The same content again changes nothing."""
        with archive.open("rb") as file:
            answer = self.connection.request(
                "POST",
                f"/projects/{project}/uploads",
                repeatable=True,
                content=lambda: _from_start(file),
                headers={"Content-Type": ARCHIVE_TYPE},
                timeout=UPLOAD_TIMEOUT_S,
            )
        return decode(wire.jobs.Upload, answer)

    def tokens(self) -> list[wire.account.Token]:
        """List the user's own tokens that are still valid."""
        return decode_page(wire.account.Token, self.connection.request("GET", "/tokens")).results

    def create_token(
        self,
        name: str,
        *,
        project: str | None = None,
        read_only: bool = False,
        days: int | None = None,
    ) -> wire.account.NewToken:
        """Create a token; its secret is in `token` this once."""
        body = {"name": name, "project": project, "read_only": read_only, "days": days}
        return decode(wire.account.NewToken, self.connection.request("POST", "/tokens", json=body))

    def revoke_token(self, token_id: int) -> None:
        """Revoke one of the user's own tokens at once."""
        self.connection.request("DELETE", f"/tokens/{token_id}")

    def secrets(self, project: str) -> list[wire.projects.Secret]:
        """List the project's secrets by name, without their values."""
        answer = self.connection.request("GET", f"/projects/{project}/secrets")
        return decode_page(wire.projects.Secret, answer).results

    def set_secret(self, project: str, name: str, value: str) -> wire.projects.Secret:
        """Make a secret, or give it another value."""
        path, body = _secret(project, name), {"value": value}
        return decode(
            wire.projects.Secret, self.connection.request("PUT", path, repeatable=True, json=body)
        )

    def delete_secret(self, project: str, name: str) -> None:
        """Remove a secret."""
        self.connection.request("DELETE", _secret(project, name))

    def clouds(self) -> list[wire.account.CloudEntry]:
        """List the cloud credentials that were added, without their values."""
        return decode_page(
            wire.account.CloudEntry, self.connection.request("GET", "/clouds")
        ).results

    def add_cloud(self, kind: str, content: Mapping[str, str]) -> list[str]:
        """Store credentials; the names they are listed under."""
        answer = self.connection.request("PUT", f"/clouds/{kind}", json=dict(content))
        return list(answer["names"])

    def remove_cloud(self, kind: str, name: str) -> None:
        """Forget credentials."""
        self.connection.request("DELETE", f"/clouds/{kind}/{quote(name, safe='')}")

    def check_clouds(self) -> list[wire.account.CloudState]:
        """Check now which clouds SkyPilot can use; RefusedError `still_looking`: not known yet."""
        return decode_page(
            wire.account.CloudState, self.connection.request("POST", "/clouds/check")
        ).results

    def job_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a specification, for editors."""
        schema: dict[str, Any] = self.connection.request("GET", "/schema/job")
        return schema


def _new_key() -> str:
    return uuid.uuid4().hex


def _job(project: str, job_id: int) -> str:
    return f"/projects/{project}/jobs/{job_id}"


def _secret(project: str, name: str) -> str:
    return f"/projects/{project}/secrets/{quote(name, safe='')}"


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have a value."""
    return {key: value for key, value in params.items() if value not in (None, "")}


def _from_start(file: IO[bytes]) -> IO[bytes]:
    file.seek(0)
    return file
