"""Every operation of the API that changes something writes one entry to the audit log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jobs.backends import clouds
from jobs.models import ApiToken, AuditEntry, Project
from monarch_client.sync.archive import pack
from tests.integration.api.audited_operations import (
    CHANGE_NOTHING,
    OF_RUNNERS,
    OPERATIONS,
    SECRET,
)
from tests.integration.api.conftest import Caller
from tests.integration.api.test_authorisation import operations, route_of
from tests.unit.backends.clouds.test_clouds import AWS_PAIR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake")]
MADE_UP = {"slug": "rl", "name": "night", "kind": "aws"}
REQUEST_ID = "from-a-test"


@pytest.fixture(autouse=True)
def skypilot_home(settings: Any, mportal_home: Path) -> None:
    settings.MPORTAL_SKYPILOT_ENDPOINT = ""


def call(caller: Caller, operation: tuple[str, str], parts: dict[str, Any], body: Any = b"") -> Any:
    method, name = operation
    query = OPERATIONS[operation].query if operation in OPERATIONS else ""
    values = {**MADE_UP, **parts}
    path = re.sub(r"<\w+:(\w+)>", lambda found: str(values[found[1]]), route_of(name))
    options = {"content_type": "application/gzip"} if isinstance(body, bytes) else {}
    headers = {"X-Request-ID": REQUEST_ID}
    return caller.send(method.upper(), f"/{path}{query}", body, headers=headers, **options)


def archive(tmp_path: Path) -> bytes:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(f"print({SECRET!r})")
    return pack(folder, tmp_path / "code.tar.gz").path.read_bytes()


def test_no_operation_that_changes_something_is_forgotten():
    changing = {each for each in operations() if each[0] != "get"}
    assert changing == set(OPERATIONS) | CHANGE_NOTHING | OF_RUNNERS


@pytest.mark.parametrize("operation", sorted(OPERATIONS), ids="-".join)
def test_an_operation_writes_one_entry_without_secrets(
    operation: tuple[str, str], project: Project, root: Caller, tmp_path: Path, caplog: Any
) -> None:
    assert root.user is not None
    case = OPERATIONS[operation]
    parts = case.needs(project, root.user)
    if operation == ("delete", "cloud_entry"):
        clouds.add(clouds.own_home(), "aws", AWS_PAIR, allow_exec=False)
        parts = {"name": "default"}
    known = AuditEntry.objects.count()
    body = case.body(parts) if callable(case.body) else case.body
    if isinstance(body, bytes):
        body = archive(tmp_path)
    with caplog.at_level("INFO"):
        answer = call(root, operation, parts, body)
    assert 200 <= answer.status_code < 300, answer.content
    (entry,) = AuditEntry.objects.order_by("pk")[known:]
    assert (entry.verb, entry.username) == (case.verb, root.user.username)
    assert entry.token_id == ApiToken.objects.filter(user=root.user).earliest("pk").pk
    assert (entry.source, entry.request_id) == ("127.0.0.1", REQUEST_ID)
    assert entry.before != entry.after
    reported = repr(list(AuditEntry.objects.values())) + caplog.text
    assert SECRET not in reported
    assert root.headers["Authorization"].split()[1] not in reported


@pytest.mark.parametrize("operation", sorted(CHANGE_NOTHING), ids="-".join)
def test_what_changes_nothing_writes_no_entry(
    operation: tuple[str, str], project: Project, root: Caller
) -> None:
    parts = {"template_name": "hello-mesh"}
    body = {} if operation[1] == "template_fill_in" else {"spec": {"run": "true"}}
    call(root, operation, parts, body)
    assert not AuditEntry.objects.exists()
