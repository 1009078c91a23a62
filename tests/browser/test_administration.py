"""Administration and settings in a browser: axe in three looks, and an invitation by keyboard."""

from __future__ import annotations

import pytest

from jobs.models import Pool, Quota, User
from tests.browser.test_accessibility import LOOKS, assert_fine
from tests.each_case import check_each
from tests.factories import make_user

PAGES = [
    "/settings/users",
    "/settings/users/nora",
    "/settings/sessions",
    "/settings/all-projects",
    "/settings/queues",
    "/settings/queues/default",
    "/settings/pools",
    "/settings/quotas",
    "/settings/clouds",
    "/settings/add-cloud/slurm",
    "/rl/settings",
    "/rl/members",
    "/rl/settings/budget",
    "/rl/settings/policies",
]


@pytest.fixture
def root(page, project, ada):
    User.objects.filter(pk=ada.pk).update(is_superuser=True)
    make_user("nora")
    Pool.objects.create(name="a100", backend_name="local", caps={"nodes": 4, "gpus:A100": 32})
    Quota.objects.create(project=project, caps={"nodes": 8, "gpus:A100": 16}, nominal={"nodes": 4})
    return page


@pytest.mark.feature("P7.1")
@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_and_nothing_sticks_out(root, look):
    width, scheme = LOOKS[look]
    root.set_viewport_size({"width": width, "height": 800})
    root.emulate_media(color_scheme=scheme, reduced_motion="reduce")

    def check(path: str) -> None:
        root.goto(path)
        assert_fine(root)

    check_each(PAGES, check)


@pytest.mark.feature("P7.1")
def test_a_user_is_invited_and_disabled_by_keyboard(root):
    root.goto("/settings/users")
    root.get_by_label("User name").focus()
    root.keyboard.type("otto")
    root.keyboard.press("Enter")
    assert "/sign-in/once/" in root.locator("#new-link").inner_text()
    root.get_by_role("link", name="otto").press("Enter")
    root.get_by_role("button", name="Disable", exact=True).press("Enter")
    dialog = root.get_by_role("dialog", name="Disable otto?")
    assert "Jobs continue" in dialog.inner_text()
    dialog.get_by_role("button", name="Disable the account").press("Enter")
    root.get_by_text("otto is disabled.").wait_for()
