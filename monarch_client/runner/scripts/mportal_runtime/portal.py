"""Call the portal's REST API with the token of the job's program, by the standard library alone."""

from __future__ import annotations

import http.client
import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing import Any

# The runner's file: its modules know how to check that a server is the portal.
RUNNER_VARIABLE = "MPORTAL_RUNNER_FILE"
_TIMEOUT_S = 30.0
_FIRST_ERROR = 400


class Answer(NamedTuple):
    """An answer of the portal: its status and its JSON."""

    status: int
    content: dict[str, Any]

    @property
    def is_error(self) -> bool:
        """Whether the portal refused the request."""
        return self.status >= _FIRST_ERROR

    @property
    def detail(self) -> str:
        """The reason of a refusal, with the errors of a specification."""
        errors = [str(each.get("message")) for each in self.content.get("errors") or []]
        return " ".join(errors) or str(self.content.get("detail") or f"status {self.status}")


class Portal:
    """The jobs of this job's project, as its program may see them: its own children."""

    def __init__(self) -> None:
        self._url = os.environ["MPORTAL_URL"]
        self._token = os.environ["MPORTAL_TOKEN"]
        self._jobs = f"/api/v1/projects/{os.environ['MPORTAL_PROJECT']}/jobs"

    def get(self, path: str) -> Answer:
        """Get what is at `path` below the project's jobs; OSError without an answer."""
        return self._call("GET", path, None, {})

    def post(self, path: str, content: dict[str, Any] | None = None, key: str = "") -> Answer:
        """Post `content`; `key` makes a repeated post return the same job."""
        headers = {"Idempotency-Key": key} if key else {}
        return self._call("POST", path, content, headers)

    def _call(
        self, method: str, path: str, content: dict[str, Any] | None, headers: dict[str, str]
    ) -> Answer:
        body = None if content is None else json.dumps(content)
        sent = {"Authorization": f"Bearer {self._token}", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            # A connection each: calls are seconds apart, and threads may share this object.
            connection = _connect(self._url, self._token)
            try:
                url = urlsplit(self._url).path + self._jobs + path
                connection.request(method, url, body, sent)
                response = connection.getresponse()
                return Answer(response.status, _json_of(response.read()))
            finally:
                connection.close()
        except http.client.HTTPException as error:
            raise OSError(f"the portal does not answer: {error!r}") from error


def runner_module(name: str) -> Any:
    """Import a module of the runner from its file: this program is none of the runner's."""
    runner = os.environ.get(RUNNER_VARIABLE)
    if runner and runner not in sys.path:
        sys.path.append(runner)
    return importlib.import_module("monarch_client.runner." + name)


def _connect(url: str, token: str) -> http.client.HTTPConnection:
    connection: http.client.HTTPConnection
    connection = runner_module("delivery.portal_address").open_connection(url, token, _TIMEOUT_S)
    return connection


def _json_of(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
