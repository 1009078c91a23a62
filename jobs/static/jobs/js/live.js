// Keeps the parts inside [data-live] as the server has them now. Hints come over one stream
// (data-stream); without one, or while it is lost, the parts are asked for every few seconds.
import { morphParts } from "./morph.js";

const POLL_MS = 5000;
const SETTLE_MS = 150;
const RETRY_MS = 3000;
const HIDDEN_MS = 20000;

let source = null;
let timer = 0;
let asked = null;

function place() {
  return document.querySelector("[data-live]");
}

function say(state, words) {
  const sign = document.getElementById("live-state");
  if (!sign || sign.dataset.state === state) return;
  sign.dataset.state = state;
  sign.textContent = words;
}

// Asks for the parts now. A newer question makes an older answer worthless.
export async function refresh() {
  const url = place()?.dataset.live;
  if (!url) return;
  asked?.abort();
  asked = new AbortController();
  try {
    const response = await fetch(url, { signal: asked.signal, redirect: "manual" });
    // Signed out, or the thing is gone: the page itself says so best.
    if (response.type === "opaqueredirect" || response.status === 404) return location.reload();
    if (response.ok && place()?.dataset.live === url) morphParts(await response.text());
  } catch (error) {
    if (error.name !== "AbortError") say("lost", "Connection lost, trying again");
  }
}

// Many hints at once are one question.
export function refreshSoon() {
  clearTimeout(timer);
  timer = setTimeout(refresh, SETTLE_MS);
}

function connect() {
  const url = place()?.dataset.stream;
  if (!url || source) return;
  source = new EventSource(url);
  source.onopen = () => {
    say("on", "Live");
    refreshSoon();
  };
  source.addEventListener("changed", refreshSoon);
  source.onerror = () => {
    say("lost", "Connection lost, trying again");
    // The browser retries by itself unless the answer was an error.
    if (source.readyState === EventSource.CLOSED) {
      disconnect();
      setTimeout(connect, RETRY_MS);
    }
  };
}

function disconnect() {
  source?.close();
  source = null;
}

// A tab that nobody sees holds no connection: browsers allow six for a whole portal.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(disconnect, HIDDEN_MS);
  else {
    refreshSoon();
    connect();
  }
});

setInterval(() => {
  const healthy = source?.readyState === EventSource.OPEN;
  if (place() && !document.hidden && !healthy && !("quiet" in place().dataset)) refresh();
}, POLL_MS);

connect();
