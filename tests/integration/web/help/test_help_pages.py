"""The documentation and what is new, from the frame of every page."""

from __future__ import annotations

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


def test_whats_new_is_marked_until_it_was_seen(viewer):
    assert MARK in viewer.get("/rl/jobs").content.decode()
    page = viewer.text(NEWS)
    assert "Unreleased" in page
    assert MARK not in viewer.get("/rl/jobs").content.decode()
