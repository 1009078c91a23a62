"""/settings/palette, which pages request with the project that they show."""

from __future__ import annotations

import pytest


def test_a_project_whose_name_cannot_be_stored_is_not_found(member):
    assert member.get("/settings/palette", {"project": "r\0"}).status_code == 404


@pytest.mark.parametrize("text", ["\0", "9" * 40, "#", "\u202e%_\\"])
def test_a_text_that_no_job_can_have_finds_none(member, text):
    found = member.get("/settings/palette/jobs", {"project": "rl", "q": text})
    assert (found.status_code, found.json()) == (200, {"jobs": []})
