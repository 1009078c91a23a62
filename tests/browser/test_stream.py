"""Reconnection of the pages' streams after the portal was away."""

from __future__ import annotations

# Breaks many streams as often as asked, with timers that run out at once, and notes their waits.
PROGRAM = """async ([tabs, failures]) => {
  const { Stream } = await import("/static/jobs/js/stream.js");
  const waits = [];
  const sources = [];
  window.EventSource = class {
    constructor() { sources.push(this); }
    addEventListener() {}
    close() {}
  };
  window.setTimeout = (call, wait) => { waits.push(wait); call(); return 1; };
  for (let tab = 0; tab < tabs; tab++) {
    new Stream(() => "/", { state() {}, events: {} }).open();
    for (let failure = 0; failure < failures; failure++) sources.at(-1).onerror();
  }
  return waits;
}"""


def test_tabs_that_lost_the_portal_together_do_not_come_back_together(page):
    page.goto("/rl/jobs")
    waits = page.evaluate(PROGRAM, [200, 1])
    assert len(waits) == 200
    assert max(waits) - min(waits) > 500
    assert max(sum(at <= wait < at + 250 for wait in waits) for at in range(0, 2000, 50)) < 120


def test_a_tab_asks_less_and_less_often_and_at_least_every_ten_seconds(page):
    page.goto("/rl/jobs")
    waits = page.evaluate(PROGRAM, [1, 40])
    assert 0 < waits[0] <= 1500
    assert max(waits) <= 10000
    assert sum(waits[4:]) / len(waits[4:]) > 2000
