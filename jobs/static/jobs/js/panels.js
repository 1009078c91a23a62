// Tabs of a job that are asked for while somebody looks at them and the attempt goes on, at a pace
// that does not depend on how many tell how much. A panel names its address and its part.
import { morphParts } from "./morph.js";

const PACE_MS = 5000;

for (const panel of document.querySelectorAll("[data-source]")) keepFresh(panel);

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
      // What is wrong with the connection, the page tells by its other parts.
      if (response.ok) morphParts(await response.text());
      isGone ||= response.status === 404;
    } catch {
      // The next time comes soon.
    } finally {
      if (asked === question) asked = null;
    }
  }

  // Another host, or other colours: without leaving the place on the page.
  panel.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-host]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.replaceState(null, "", link.href);
    refresh();
  });

  new MutationObserver(() => isSeen() && refresh()).observe(panel, { attributeFilter: ["hidden"] });
  document.addEventListener("visibilitychange", () => isSeen() && !isFinal() && refresh());
  // A portal that takes longer than that is not asked again before it has answered.
  setInterval(() => isSeen() && !isFinal() && !isGone && !asked && refresh(), PACE_MS);
}
