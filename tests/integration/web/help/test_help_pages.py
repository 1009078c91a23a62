"""The documentation and what is new, from the frame of every page."""

from __future__ import annotations

import re

from jobs.web.base.document_search import search_documents
from jobs.web.base.documents import rendered
from monarch_client.version import __version__

NEWS = "/settings/whats-new"
MARK = 'class="unread"'


def test_every_page_leads_to_the_documentation_and_names_the_version(viewer):
    foot = viewer.get("/rl/jobs").content.decode().partition("<footer")[2]
    assert __version__ in foot
    assert 'href="/settings/help/docs/README.md"' in foot
    page = viewer.get("/settings/help/docs/README.md")
    assert page.status_code == 200
    assert 'href="/settings/help/docs/tutorial/first-job.md"' in page.content.decode()
    assert viewer.get("/settings/help/docs/images/job-page.png")["Content-Type"] == "image/png"


def test_a_documentation_site_of_ones_own_takes_the_link(viewer, settings):
    settings.MPORTAL_DOCS_URL = "https://docs.example.org/"
    assert 'href="https://docs.example.org/"' in viewer.get("/rl/jobs").content.decode()


def test_only_files_of_the_documentation_are_served(viewer):
    for name in (
        "manage.py",
        "docs/../manage.py",
        "docs/%2e%2e/manage.py",
        "docs",
        "jobs/tasks.py",
    ):
        assert viewer.get(f"/settings/help/{name}").status_code == 404


def test_the_documentation_is_searched_by_words_and_leads_to_the_section(viewer):
    page = viewer.get("/settings/help-search", {"q": "PATIENCE scheduling"}).content.decode()
    assert re.search(r'href="/settings/help/docs/explanation/scheduling\.md#[\w-]+"', page)
    assert 'value="PATIENCE scheduling"' in page
    assert "No section has all of these words" in viewer.text("/settings/help-search", q="xyzzy q")
    assert b'value="&lt;b&gt;"' in viewer.get("/settings/help-search", {"q": "<b>"}).content


def test_a_section_with_the_words_in_its_heading_comes_first():
    first = search_documents("forward a port")[0].section
    assert (first.page, first.anchor) == ("docs/howto/ssh-into-a-job.md", "forward-a-port")
    for found in search_documents("job"):
        ids = str(rendered(found.section.page))
        assert f'id="{found.section.anchor}"' in ids


def test_whats_new_is_marked_until_it_was_seen(viewer):
    assert MARK in viewer.get("/rl/jobs").content.decode()
    page = viewer.text(NEWS)
    assert "Unreleased" in page
    assert MARK not in viewer.get("/rl/jobs").content.decode()
