"""The whole API under generated requests, well-formed and not, by whomever.

They are made from the OpenAPI description. No answer may be a 5xx, and each must be one that the
description tells of: its status, its media type, its shape.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from asgiref.sync import sync_to_async
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.meta import ParameterLocation

from jobs.api.logs import log_views
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt
from jobs.statuses import JobStatus, Role
from tests.factories import make_attempt, make_job, make_member, make_project, make_token
from tests.undone import undone

# `make faults` sets more, and has the values at the bounds of every parameter tried as well.
FEW = 2
EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", FEW))
CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
# What is wrong with a specification is validation's answer, not its refusal; DRF takes 5 for "5".
LENIENT = {"job_validate", "token_create"}

load_all_checks()
schema = schemathesis.openapi.from_dict(
    SchemaGenerator().get_schema(request=None, public=True),
    config=SchemathesisConfig.from_dict(
        {
            "generation": {"deterministic": True, "with-security-parameters": False},
            "phases": {"coverage": {"enabled": EXAMPLES > FEW}},
        }
    ),
)
schema.app = WSGIHandler()


@schemathesis.serializer("application/gzip", "application/x-ndjson")
def as_it_is(_context: Any, value: Any) -> Any:
    """Bytes, whatever was made up."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


class Portal:
    """What a request can be about, and the headers of those who ask."""

    def __init__(self) -> None:
        project = make_project("rl")
        self.job = make_job(project, status=JobStatus.SUCCEEDED)
        self.attempt: Attempt = make_attempt(self.job)
        users = {role: make_member(project, Role(role)) for role in ("admin", "viewer")}
        self.spare, _ = make_token(users["admin"])
        self.secrets = {role: make_token(user)[1] for role, user in users.items()}

    def headers(self, who: str, path: str) -> dict[str, str]:
        # The client of these tests unpacks nothing. A failure shows who has sent its request.
        plain = {"Accept-Encoding": "identity", "X-Sent-By": who}
        if who == "nobody":
            return plain
        of_attempt = attempt_token(self.job.pk, self.attempt.number)
        secret = of_attempt if path.endswith("/frames") else self.secrets[who]
        return {**plain, "Authorization": f"Bearer {secret}"}

    def address(self, case: Any) -> None:
        """Let sound path parameters name what there is."""
        if case.meta and case.meta.is_negative_at(ParameterLocation.PATH):
            return
        real = {
            "slug": "rl",
            "job_id": self.job.pk,
            "attempt_id": self.attempt.pk,
            "token_id": self.spare.pk,
            "digest": "a" * 64,
            "cluster_name": str(self.attempt.cluster),
        }
        # Others are made up by whoever asks, and lead nowhere.
        for name in real.keys() & (case.path_parameters or {}).keys():
            case.path_parameters[name] = str(real[name])


@pytest.fixture
def portal(db: None, redis_client: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Portal]:
    # Threads of their own would see only what is committed.
    monkeypatch.setattr(log_views, "in_thread", lambda read, *a: sync_to_async(read)(*a))
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    # As Django's test client does: the test's transaction must outlive its requests.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield Portal()
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


often = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
odd_but_meant = pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume async")


def has_empty_parameter(case: Any) -> bool:
    """Whether a parameter has no value: as in a form that was not filled in, it is none."""
    given = (case.query or {}).values()
    # A list or an object is sent as its parts: an empty one, or one of nothing, as nothing.
    return any(value in ("", None, [], {}, [""], [None]) for value in given)


def send(case: Any, portal: Portal, who: str) -> None:
    """Send the request as `who` and check the answer against the description."""
    names = set(CHECKED)
    if case.operation.definition.raw["operationId"] in LENIENT or has_empty_parameter(case):
        names.remove("negative_data_rejection")
    checks = CHECKS.get_by_names(sorted(names))
    with undone():
        case.call_and_validate(headers=portal.headers(who, case.path), checks=checks)


@odd_but_meant
@pytest.mark.feature("P7.2")
@schema.parametrize()
@often
def test_requests_are_answered_as_described(case: Any, portal: Portal) -> None:
    portal.address(case)
    send(case, portal, "admin")
    if case.method != "GET":
        send(case, portal, "viewer")
    send(case, portal, "nobody")
