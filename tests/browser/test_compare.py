"""The charts of compared runs in a browser: brush, keys, legend and smoothing; in every look."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from jobs.models import Job
from tests.browser.test_keyboard import tab_to
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.integration.api.jobs.test_runs import add_series, make_run

# Of a picture, whose coordinates are 340 wide; the axis is between these.
LEFT, RIGHT, WIDTH = 54, 334, 340


@pytest.fixture
def runs(project: Any, ada: Any) -> list[Job]:
    """Create six runs of a sweep with two metrics over 101 steps."""
    runs = [make_run(project, took_s=600, lr=f"0.{n}", submitted_by=ada) for n in range(1, 7)]
    for place, job in enumerate(runs, 1):
        for name in ("loss", "reward"):
            series = add_series(job.attempts.get(), name, range(101))
            begin = job.started_at.timestamp() if job.started_at else 0
            series.recent = [
                [begin + 2 * step, step, 1, place / (step + 1) + (step * 7919 % 13) / 200]
                for step in range(101)
            ]
            series.save()
    return runs


def address_of(runs: list[Job], **view: Any) -> str:
    rest = "".join(f"&{name}={value}" for name, value in view.items())
    return f"/rl/compare?jobs={','.join(str(job.pk) for job in runs)}{rest}"


def drag(page: Page, name: str, begin: float, end: float) -> None:
    """Select a part of the axis by dragging over a chart."""
    chart = page.get_by_role("img", name=name)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    xs = [box["x"] + box["width"] * (LEFT + (RIGHT - LEFT) * part) / WIDTH for part in (begin, end)]
    page.mouse.move(xs[0], middle)
    page.mouse.down()
    page.mouse.move(xs[1], middle)
    page.mouse.up()


def ends_of(page: Page, name: str) -> list[float]:
    chart = page.get_by_role("img", name=name)
    return [float(chart.get_attribute(f"data-{end}") or 0) for end in ("low", "high")]


@pytest.mark.parametrize(("axis", "span"), [("step", 100), ("time", 200)])
def test_a_brush_zooms_the_charts_of_all_runs_and_the_address_keeps_it(page, runs, axis, span):
    page.goto(address_of(runs, by=axis))
    drag(page, "loss of 6 runs", 0.2, 0.6)
    expect(page.get_by_role("link", name="Zoom out")).to_be_visible()
    for _ in range(2):
        for name in ("loss", "reward"):
            low, high = ends_of(page, f"{name} of 6 runs")
            assert 0.17 * span < low < 0.23 * span
            assert 0.57 * span < high < 0.63 * span
        page.reload()
    page.get_by_role("img", name="loss of 6 runs").dblclick()
    expect(page.get_by_role("link", name="Zoom out")).to_have_count(0)
    assert "from=" not in page.url


def test_keys_zoom_and_mark_without_a_pointer(page, runs):
    page.goto(address_of(runs))
    tab_to(page, "Charts of the runs")
    page.keyboard.press("+")
    expect(page.get_by_role("link", name="Zoom out")).to_be_visible()
    assert ends_of(page, "loss of 6 runs") == [25, 75]
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Values at step 50")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Values at step 51")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Values at step")).to_have_count(0)
    page.keyboard.press("0")
    expect(page.get_by_role("link", name="Zoom out")).to_have_count(0)


def test_the_legend_switches_a_run_off_in_all_charts_and_on_again(page, runs):
    page.goto(address_of(runs))
    tab_to(page, f"Hide job {runs[2].pk}")
    page.keyboard.press("Enter")
    for name in ("loss", "reward"):
        chart = page.get_by_role("img", name=f"{name} of 5 runs")
        expect(chart).to_be_visible()
        assert chart.locator("polyline.c2").count() == 0
    assert f"hide={runs[2].pk}" in page.url
    focused = page.locator(":focus")
    expect(focused).to_have_attribute("aria-label", f"Show job {runs[2].pk}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("img", name="loss of 6 runs")).to_be_visible()


def test_the_slider_smooths_the_lines_and_keeps_the_values_faint(page, runs):
    page.goto(address_of(runs, scale="log"))
    page.get_by_role("slider", name="Smoothing").fill("80")
    expect(page.locator("polyline.faint").first).to_be_attached()
    expect(page).to_have_url(re.compile("smooth=80"))
    page.get_by_role("slider", name="Smoothing").fill("0")
    expect(page.locator("polyline.faint")).to_have_count(0)


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.mark.timeout(400)
def test_compared_charts_are_fine_in_every_look(camera, runs):
    view = {"smooth": 60, "at": 40, "hide": runs[1].pk}
    camera.at(address_of(runs), "compare", "#compared polyline")
    camera.at(address_of(runs, **view, scale="log"), "compare-styled", "#compared polyline")
    camera.page.locator("[aria-labelledby=compared-metrics]").screenshot(
        path=f".results/screenshots/{camera.look}/compare-part.png"
    )
    assert camera.problems == []
