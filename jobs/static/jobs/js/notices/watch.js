// Notifies of jobs that started or ended, each once: of all tabs of the portal one looks at the jobs,
// every few seconds and when a live part of its page changed.
import { isAllowed } from "./permission.js";
import { showNotice } from "./show.js";
import { account, isWanted, NAME, readChoice, writeChoice } from "./store.js";

const PACE_MS = 10000;
const GAP_MS = 2000;
// A request without an answer for so long is given up.
const PATIENCE_MS = 20000;
// A job that recovers runs again, which is no news.
const ORDER = ["waiting", "running", "ended"];
const SAID = { running: "has started", ended: "has ended" };
let isLooking = false;
let lookedAt = 0;
let timer = 0;

export function watch(address) {
  // The lock is held until the tab is closed; then another tab gets it.
  navigator.locks.request(NAME, () => new Promise(() => begin(address)));
}

function begin(address) {
  look(address);
  setInterval(() => look(address), PACE_MS);
  document.addEventListener("portal:morphed", () => {
    const wait = Math.max(0, lookedAt + GAP_MS - Date.now());
    timer ||= setTimeout(() => look(address), wait);
  });
}

async function look(address) {
  clearTimeout(timer);
  timer = 0;
  const choice = readChoice();
  if (isLooking || !isAllowed() || !isWanted(choice)) return;
  isLooking = true;
  lookedAt = Date.now();
  try {
    const query = { jobs: Object.keys(choice.watched).join(","), own: choice.own ? "1" : "" };
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const answer = await fetch(`${address}?${new URLSearchParams(query)}`, { signal, redirect: "manual" });
    if (answer.ok) take(await answer.json(), choice);
  } catch {
    // The portal is away, which the page shows; the next time comes soon.
  }
  isLooking = false;
}

// `requested`: the choice for which the answer was requested.
function take({ user, jobs }, requested) {
  // Another tab has signed in as someone else.
  if (user !== account) return;
  // What was chosen while the answer was under way stays.
  const choice = readChoice();
  const changed = jobs.filter((job) => isNews(choice, job));
  const before = choice.known;
  const found = new Set(jobs.map(({ id }) => String(id)));
  // A watched job that is not in the answer was deleted, or is in a project that the user left.
  for (const id of Object.keys(requested.watched)) if (!found.has(id)) delete choice.watched[id];
  choice.known = Object.fromEntries(Object.entries(before).filter(([id]) => id in choice.watched));
  for (const { id, phase } of jobs) {
    choice.known[id] = isLater(phase, before[id]) ? phase : before[id];
    if (phase === "ended") delete choice.watched[id];
  }
  choice.isBegun = requested.own && choice.own;
  writeChoice(choice);
  changed.forEach(notify);
}

// A job that was not there before is news, unless it is the first look at all own jobs.
function isNews({ known, isBegun, watched }, { id, phase }) {
  if (!(id in watched) && !isBegun) return false;
  return isLater(phase, known[id] ?? "waiting");
}

function isLater(phase, known) {
  return ORDER.indexOf(phase) > ORDER.indexOf(known);
}

function notify(job) {
  const isOfJob = `${location.pathname}/`.startsWith(`${job.href}/`);
  if (isOfJob && !document.hidden && document.hasFocus()) return;
  showNotice(`${job.name} #${job.id} ${SAID[job.phase]}`, {
    body: `${job.status_label}, project ${job.project}`,
    tag: `portal-job-${job.id}-${job.phase}`,
    href: job.href,
  });
}
