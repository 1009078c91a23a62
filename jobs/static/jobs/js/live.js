// Keeps the parts inside [data-live] up to date. Hints come over one stream
// (data-stream); without one, or while it is lost, the parts are fetched every few seconds.
import { leaveRefused, report } from "./connection.js";
import { say } from "./live_state.js";
import { morphParts, morphRows } from "./morph.js";
import { Stream } from "./stream.js";

const POLL_MS = 5000;
// Besides, a page whose log reports changes: hints may be lost, and a rank's silence is no change.
const RECHECK_MS = 30000;
const SETTLE_MS = 150;
const HIDDEN_MS = 20000;
// A request without an answer for so long is given up.
const PATIENCE_MS = 20000;
// A page that has not shown a change for so long reports its age.
const BEHIND_MS = 2000;

let timer = 0;
let isAsking = false;
// When the oldest change was noticed that the page does not show, and the oldest one that the
// request under way may miss; 0: none.
let changedAt = 0;
let missedAt = 0;
let shownAt = Date.now();
// The user may be leaving this page by a form that deleted its object: the answer is the next
// page, and a reload at once would prevent it.
const LEAVING_MS = 2000;
let leaving = 0;

function reload() {
  leaving ||= setTimeout(leaveRefused, LEAVING_MS);
}

const place = () => document.querySelector("[data-live]");

function tellLost() {
  say("lost", "Connection lost, reconnecting");
  report("live", true);
}

function tellAge() {
  const state = document.getElementById("live-state")?.dataset.state;
  const age = changedAt ? Date.now() - changedAt : 0;
  if (age > BEHIND_MS && (state === "on" || state === "behind"))
    say("behind", `Updating, ${Math.round(age / 1000)} s behind`);
  else if (state === "behind") say("on", "Live");
}

function noteChange() {
  if (isAsking) missedAt ||= Date.now();
  else changedAt ||= Date.now();
}

// Fetches the parts now, or once the request under way is answered: requests that replaced one
// another would never be answered while changes come faster than answers.
export async function refresh() {
  const url = place()?.dataset.live;
  if (!url) return;
  noteChange();
  if (isAsking) return;
  isAsking = true;
  const isShown = await load(url);
  isAsking = false;
  if (isShown) changedAt = 0;
  else setTimeout(refreshSoon, POLL_MS);
  changedAt ||= missedAt;
  if (missedAt) refreshSoon();
  missedAt = 0;
  tellAge();
}

async function load(url) {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(url, { signal, redirect: "manual" });
    // Signed out, or the object was deleted: a reload shows it best.
    if (response.type === "opaqueredirect" || response.status === 404) reload();
    else if (!response.ok) tellLost();
    else {
      const parts = await response.text();
      if (place()?.dataset.live === url) morphParts(parts);
      shownAt = Date.now();
      document.dispatchEvent(new Event("parts-shown"));
      report("live", false);
      if (isHealthy()) say("on", "Live");
      return true;
    }
  } catch {
    tellLost();
  }
  return false;
}

// Many hints at once are one question.
export function refreshSoon() {
  noteChange();
  timer ||= setTimeout(() => {
    timer = 0;
    refresh();
  }, SETTLE_MS);
}

// The stream carries the rows or parts that changed. An answer under way may be older than they are.
const show = (morphed) => (event) =>
  (!morphed(JSON.parse(event.data)) || isAsking) && refreshSoon();

const stream = new Stream(() => place().dataset.stream, {
  state(state) {
    // A fetch shows whether only the stream is lost, or the portal.
    refreshSoon();
    if (state === "lost") tellLost();
    else say("on", "Live");
  },
  events: { changed: refreshSoon, rows: show(morphRows), parts: show(morphParts) },
});

function isHealthy() {
  return stream.source?.readyState === EventSource.OPEN;
}

function connect() {
  if (place()?.dataset.stream && !stream.isWanted) stream.open();
}

// A table with other filters has another stream.
document.addEventListener("htmx:afterSettle", () => place() && stream.follow());
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

// Whether to fetch the parts although nothing was reported.
function isDue() {
  if (isHealthy()) return false;
  if (!("quiet" in place().dataset)) return true;
  const isFinal = document.getElementById("job-head")?.dataset.final === "yes";
  return !isFinal && Date.now() - shownAt >= RECHECK_MS;
}

setInterval(tellAge, 1000);
setInterval(() => place() && !document.hidden && isDue() && refresh(), POLL_MS);

connect();
