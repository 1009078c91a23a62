"""/{project}/secrets."""

from __future__ import annotations

import pytest

from jobs.models import ProjectSecret
from tests.integration.web.conftest import text_of

PATH = "/rl/secrets"
VALUE = "hunter2-hunter2"


def send(browser, name="HF_TOKEN", value=VALUE, **options):
    return browser.post(PATH, {"name": name, "value": value}, **options)


def test_a_maintainer_sets_changes_and_deletes(maintainer):
    assert send(maintainer)["Location"] == PATH
    page = maintainer.text(PATH)
    assert "HF_TOKEN is set." in page and "by max" in page
    assert "too short" not in page
    send(maintainer, value="12345")
    page = maintainer.text(PATH)
    assert "too short to be masked" in page
    maintainer.post(f"{PATH}/delete", {"name": "HF_TOKEN"})
    assert "No secrets yet." in maintainer.text(PATH)


def test_members_see_names_alone(maintainer, member, viewer):
    send(maintainer)
    page = member.text(PATH)
    assert "HF_TOKEN" in page
    assert "Set a secret" not in page
    assert viewer.get(PATH).status_code == 403
    assert PATH in member.get("/rl/members").content.decode()
    assert PATH not in viewer.get("/rl/members").content.decode()


@pytest.mark.parametrize("name", ["HF_TOKEN", "no-name", ""])
def test_no_page_shows_a_value(maintainer, name):
    answers = [send(maintainer, name, follow=True), maintainer.get(PATH)]
    assert [VALUE in answer.content.decode() for answer in answers] == [False, False]


def test_what_is_wrong_is_reported(maintainer):
    assert "be the name of a secret" in text_of(send(maintainer, "no-name"))
    assert "This field is required." in text_of(send(maintainer, value=""))
    assert not ProjectSecret.objects.exists()


def test_without_keys_the_page_says_whose_matter_it_is(maintainer, settings):
    settings.MPORTAL_SECRET_KEYS = []
    assert "MPORTAL_SECRET_KEYS" in text_of(send(maintainer))


def test_line_ends_are_those_that_were_typed(maintainer, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "jobs.actions.projects.secrets.sealed", lambda text, **_: seen.append(text) or b""
    )
    send(maintainer, value="one line\r\nanother\r\n")
    assert seen == ["one line\nanother\n"]
