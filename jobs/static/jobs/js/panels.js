// Tabs of a job, and compared runs, that are fetched while they are visible and an attempt runs: at
// a fixed interval, and when the job changes.
// A panel names its address and its part.
import { morphParts } from "./morph.js";

const PACE_MS = 5000;

for (const panel of document.querySelectorAll("[data-source][data-part]")) keepFresh(panel);

function keepFresh(panel) {
  let asked = null;
  let isGone = false;

  function isSeen() {
    return !panel.hidden && !document.hidden;
  }

  function isFinal() {
    return document.getElementById(panel.dataset.part)?.hasAttribute("data-final");
  }

  async function refresh() {
    asked?.abort();
    const question = (asked = new AbortController());
    try {
      const address = panel.dataset.source + location.search;
      const response = await fetch(address, { signal: question.signal, redirect: "manual" });
      // Other parts of the page show what is wrong with the connection.
      if (response.ok) morphParts(await response.text());
      isGone ||= response.status === 404;
    } catch {
      // The next time comes soon.
    } finally {
      if (asked === question) asked = null;
    }
  }

  // Shows another host or other colors without leaving the position on the page.
  panel.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-host]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    // Links in a picture have no text as their `href`.
    history.replaceState(null, "", link.getAttribute("href"));
    refresh();
  });

  // Another script has changed the address.
  panel.addEventListener("address-changed", refresh);
  new MutationObserver(() => isSeen() && refresh()).observe(panel, { attributeFilter: ["hidden"] });
  document.addEventListener("visibilitychange", () => isSeen() && !isFinal() && refresh());
  // What changed of the job may have changed its nodes.
  document.addEventListener("parts-shown", () => isSeen() && !isFinal() && !asked && refresh());
  // A portal that takes longer than that is not asked again before it has answered.
  setInterval(() => isSeen() && !isFinal() && !isGone && !asked && refresh(), PACE_MS);
}
