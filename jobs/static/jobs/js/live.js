// Keeps the parts inside [data-live] up to date. Hints come over one stream
// (data-stream); without one, or while it is lost, the parts are fetched every few seconds.
import { report } from "./connection.js";
import { morphParts } from "./morph.js";
import { Stream } from "./stream.js";

const POLL_MS = 5000;
const SETTLE_MS = 150;
const HIDDEN_MS = 20000;

let timer = 0;
let asked = null;
// The user may be leaving this page by a form that deleted its object: the answer is the next
// page, and a reload at once would prevent it.
const LEAVING_MS = 2000;
let leaving = 0;

function reload() {
  leaving ||= setTimeout(() => location.reload(), LEAVING_MS);
}

function place() {
  return document.querySelector("[data-live]");
}

function say(state, words) {
  const sign = document.getElementById("live-state");
  if (!sign || sign.dataset.state === state) return;
  sign.dataset.state = state;
  sign.textContent = words;
}

function tellLost() {
  say("lost", "Connection lost, reconnecting");
  report("live", true);
}

// Fetches the parts now. A newer request makes an older answer worthless.
export async function refresh() {
  const url = place()?.dataset.live;
  if (!url) return;
  asked?.abort();
  asked = new AbortController();
  try {
    const response = await fetch(url, { signal: asked.signal, redirect: "manual" });
    // Signed out, or the object was deleted: a reload shows it best.
    if (response.type === "opaqueredirect" || response.status === 404) return reload();
    if (!response.ok) return tellLost();
    const parts = await response.text();
    if (place()?.dataset.live === url) morphParts(parts);
    report("live", false);
  } catch (error) {
    if (error.name !== "AbortError") tellLost();
  }
}

// Many hints at once are one question.
export function refreshSoon() {
  clearTimeout(timer);
  timer = setTimeout(refresh, SETTLE_MS);
}

const stream = new Stream(() => place().dataset.stream, {
  state(state) {
    // A fetch shows whether only the stream is lost, or the portal.
    refreshSoon();
    if (state === "lost") tellLost();
    else say("on", "Live");
  },
  events: { changed: refreshSoon },
});

function connect() {
  if (place()?.dataset.stream && !stream.isWanted) stream.open();
}

// A hidden tab holds no connection: browsers allow six for a whole portal.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => stream.close(), HIDDEN_MS);
  else {
    refreshSoon();
    connect();
  }
});

setInterval(() => {
  const healthy = stream.source?.readyState === EventSource.OPEN;
  if (place() && !document.hidden && !healthy && !("quiet" in place().dataset)) refresh();
}, POLL_MS);

connect();
