"""Pages that do not move while they load: cumulative layout shift, as Chromium measures it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser import team, team_queue
from tests.browser.test_pictures import LOOKS
from tests.browser.visits import sign_in
from tests.each_case import check_each
from tests.factories import make_project

MOST = 0.05
PAGES = (
    "/rl",
    "/rl/jobs",
    "/rl/jobs?user=ada&sort=name",
    "/rl/jobs/new",
    f"/rl/jobs/{team.RUNNING}",
    f"/rl/jobs/{team.FAILED}",
    f"/rl/jobs/{team.FAILED}/events",
    f"/rl/jobs/{team.RUNNING}/charts",
    f"/rl/jobs/{team.RUNNING}/nodes",
    f"/rl/jobs/{team.RUNNING}/spec",
    "/rl/jobs/{after}/graph",
    "/rl/history?name=ppo-cartpole",
    f"/rl/compare?jobs={team.FAILED},{team.SUCCEEDED}",
    "/rl/arrays/{array}",
    "/rl/queue",
    "/rl/queue/timeline",
    "/rl/machines",
    "/rl/usage",
    "/rl/schedules",
    "/rl/schedules/nightly-eval",
    "/rl/new-schedule",
    "/rl/templates",
    "/rl/templates/torchrun",
    "/rl/new-template",
    "/rl/members",
    "/rl/secrets",
    "/rl/settings",
    "/rl/settings/policies",
    "/settings/tokens",
    "/settings/sessions",
    "/settings/projects",
    "/settings/machines",
    "/settings/users",
    "/settings/queues",
    "/settings/pools",
    "/settings/quotas",
    "/settings/clouds",
)
# Shifts within a second of each other, each at most five seconds in all, count together; what a
# reader's own input causes does not count.
_OBSERVE = """
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            if (!entry.hadRecentInput) window.shifts.push({
                value: entry.value,
                of: entry.sources.map((each) => each.node?.id || each.node?.className || ""),
            });
        }
    }).observe({type: "layout-shift", buffered: true});
"""
_QUIET_MS = 600
_MOVE = """
    const late = document.createElement("div");
    late.style.height = "300px";
    document.body.prepend(late);
"""


def shift_of(page: Page, path: str) -> tuple[float, str]:
    """Return the layout shift of a page until nothing has moved for a while, and what moved."""
    page.goto(path)
    page.wait_for_load_state("load")
    # The first fetch of live parts, and of panels, follows the load.
    return _shifts(page)


def _shifts(page: Page) -> tuple[float, str]:
    page.evaluate(
        "ms => new Promise((done) => setTimeout(() => requestAnimationFrame(done), ms))", _QUIET_MS
    )
    shifts = page.evaluate("window.shifts")
    return sum(each["value"] for each in shifts), str([each["of"] for each in shifts])[:300]


@pytest.mark.feature("P7.1")
@pytest.mark.parametrize("look", ["light", "phone"])
def test_no_page_moves_while_it_loads(visitors, address, project, ada, look):
    page = visitors.open(address, **LOOKS[look])
    sign_in(page)
    ada.is_superuser = True
    ada.save()
    team.make_busy_day(project, ada)
    team_queue.make_schedules(project, ada)
    make_project("evals")
    array = team_queue.make_sweep(project, ada)
    after = array.jobs.get(array_index=4).pk
    page.add_init_script(_OBSERVE)

    def check(path: str) -> None:
        shift, moved = shift_of(page, path.format(array=array.pk, after=after))
        assert shift <= MOST, f"{shift:.3f}: {moved}"

    check_each(PAGES, check)
    # The measurement notices a page that does move.
    page.evaluate(_MOVE)
    assert _shifts(page)[0] > MOST
