"""The part of a specification that a runner receives."""

from __future__ import annotations

from jobs.backends.attempt_file import attempt_file
from monarch_client.skypilot.trust import new_authority
from tests.integration.backends.rigs import make_request


def test_a_repository_reaches_the_runner() -> None:
    source = {"url": "https://example.org/x.git", "ref": "main"}
    request = make_request({"run": "true", "workdir": source}, 1)
    found = attempt_file(request, authority=new_authority("x"), addresses=["127.0.0.2"], grace_s=1)
    assert found["git"] == source
