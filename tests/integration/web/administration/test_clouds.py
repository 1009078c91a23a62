"""The pages about credentials of clouds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.backends import clouds
from jobs.errors import StillLookingError
from jobs.models import AuditEntry
from jobs.web.administration.cloud_forms import FORMS
from monarch_client.wire.account import CloudState
from tests.factories import make_user
from tests.integration.web.conftest import Browser, browser_of, text_of
from tests.unit.backends.clouds.test_clouds import AWS_PAIR, AZURE, KEY, LAMBDA, SLURM


@pytest.fixture
def root(db: None) -> Browser:
    return browser_of(make_user("root", is_superuser=True))


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> None:
    settings.MPORTAL_SKYPILOT_ENDPOINT = ""
    settings.MPORTAL_HOME = tmp_path


def test_each_kind_of_cloud_has_a_form_for_its_fields():
    for kind, each in clouds.KINDS.items():
        fields = set(FORMS[kind].base_fields)
        assert fields <= set(each.fields)
        # A page takes the key pair of AWS, and no file of profiles.
        assert set(each.fields) - fields <= ({"file"} if kind == "aws" else set())
    assert set(FORMS) == set(clouds.KINDS)


@pytest.mark.parametrize(
    ("kind", "content"), [("aws", AWS_PAIR), ("azure", AZURE), ("lambda", LAMBDA), ("slurm", SLURM)]
)
def test_credentials_are_added_listed_without_secrets_and_removed(root, kind, content):
    added = root.post(f"/settings/add-cloud/{kind}", content, follow=True)
    page = text_of(added)
    assert "Check whether SkyPilot can use it" in page
    (entry,) = clouds.listed(clouds.own_home())
    assert f"{kind} {entry.name}" in page
    for secret in ("s/ecret+", "planted", KEY[40:80]):
        assert secret not in added.content.decode()
        assert secret not in repr(list(AuditEntry.objects.values()))
    root.post("/settings/clouds/remove", {"kind": kind, "name": entry.name})
    assert clouds.listed(clouds.own_home()) == []


def test_an_error_stands_beside_its_field_and_a_secret_is_not_sent_back(root):
    answer = root.post("/settings/add-cloud/azure", {**AZURE, "tenant_id": "planted"})
    assert list(answer.context["form"].errors) == ["tenant_id"]
    assert "abc8Q" not in answer.content.decode()
    assert root.get("/settings/add-cloud/gone").status_code == 404


def test_the_report_of_skypilot_is_shown_or_why_there_is_none(root, monkeypatch):
    checked = "jobs.web.administration.cloud_pages.cloud_check"
    rows = [CloudState(name="Lambda", is_enabled=False, reason="the key is wrong")]
    monkeypatch.setattr(checked, lambda _: rows)
    assert "Lambda the key is wrong" in text_of(root.post("/settings/clouds/check"))

    def still_looking(_: object) -> None:
        raise StillLookingError

    monkeypatch.setattr(checked, still_looking)
    assert "still checking" in text_of(root.post("/settings/clouds/check"))


def test_clouds_of_another_skypilot_server_are_set_there(root, settings):
    settings.MPORTAL_SKYPILOT_ENDPOINT = "https://sky.example.org"
    page = root.text("/settings/clouds")
    assert "by the administrator of that server" in page
    assert "Add a cloud" not in page
