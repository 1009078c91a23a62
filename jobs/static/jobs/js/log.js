// The log of the job page: wires the window of lines to its source and to the bar above it.
import { report } from "./connection.js";
import { refreshSoon } from "./live.js";
import { bindBar } from "./log/bar.js";
import { LogSource } from "./log/source.js";
import { LogWindow } from "./log/window.js";
import { forgetSent } from "./submit/draft.js";

const PAGE = 1000;
const CONTEXT = 200;
const START = "0:0";
const panel = document.querySelector("[data-log]");
const page = document.getElementById("job-page");
const parts = {
  box: document.getElementById("log"),
  list: document.getElementById("log-lines"),
  empty: document.getElementById("log-empty"),
  state: document.getElementById("log-state"),
  earlier: panel.querySelector("[data-earlier]"),
  jump: panel.querySelector("[data-jump]"),
  follow: panel.querySelector("[data-follow]"),
};

const view = new LogWindow(parts.box, parts.list, {
  rankColumn: Boolean(panel.querySelector("[data-rank]")),
  changed: showState,
});

const source = new LogSource(panel.dataset.log, panel.dataset.attempt, {
  lines: (lines) => view.append(lines),
  job: refreshSoon,
  state: showConnection,
  end() {
    showConnection("ended");
    parts.empty.textContent = "No lines were written.";
    refreshSoon();
  },
});

function showConnection(state) {
  const words = { live: "Live", lost: "Connection lost, trying again", ended: "Log complete" };
  parts.state.dataset.state = state;
  parts.state.textContent = words[state];
  report("log", state === "lost");
  // While the stream tells of changes, nobody needs to ask for them.
  if (state === "lost") delete page.dataset.quiet;
  else page.dataset.quiet = "";
}

function showState() {
  parts.empty.hidden = !view.isEmpty;
  parts.earlier.hidden = view.reachesStart || view.isEmpty;
  parts.follow.setAttribute("aria-pressed", String(view.following));
  parts.jump.hidden = view.following || view.isEmpty;
  const count = view.pending.toLocaleString();
  parts.jump.textContent = view.pending ? `Jump to newest · ${count} new` : "Jump to newest";
}

// The newest lines, then whatever comes.
async function start() {
  source.close();
  const { results, previous } = await source.page({ before: "end", limit: PAGE });
  view.replace(results, { attached: true, reachesStart: !previous });
  source.open(results.length ? placeOf(results.at(-1)) : START);
}

// The page around the line that the address names; the reader goes on from there.
async function startAt(place) {
  const [attempt, line] = place;
  const after = `${attempt}:${Math.max(0, line - CONTEXT)}`;
  const { results, next } = await source.page({ after, limit: PAGE });
  if (!results.length) return start();
  const reachesStart = line <= CONTEXT && attempt === 1;
  view.replace(results, { attached: !next, reachesStart });
  view.stopFollowing();
  document.querySelector(location.hash)?.scrollIntoView({ block: "center" });
  mark();
  source.open(next ? null : placeOf(results.at(-1)));
}

function placeOf(line) {
  return `${line.attempt}:${line.line}`;
}

function namedPlace() {
  const found = location.hash.match(/^#L(?:(\d+)-)?(\d+)$/);
  return found ? [Number(found[1] ?? 1), Number(found[2])] : null;
}

function mark() {
  for (const line of parts.list.querySelectorAll(".target")) line.classList.remove("target");
  if (namedPlace()) document.querySelector(location.hash)?.classList.add("target");
}

async function loadEarlier() {
  if (parts.earlier.disabled) return;
  parts.earlier.disabled = true;
  try {
    const { results, previous } = await source.page({ before: view.first, limit: PAGE });
    view.prepend(results, { reachesStart: !previous });
  } finally {
    parts.earlier.disabled = false;
  }
}

function jump() {
  if (view.attached) view.follow();
  else begin(start);
}

// A page that can't be had is told, and tried again.
async function begin(how) {
  try {
    await how();
  } catch {
    showConnection("lost");
    setTimeout(() => begin(how), 3000);
  }
}

bindBar(panel, parts.box, {
  rank(rank) {
    source.rank = rank;
    source.ended = false;
    parts.empty.textContent = "No lines of this rank yet.";
    begin(start);
  },
  relaid: () => view.following && view.follow(),
  follow: () => (view.following ? view.stopFollowing() : jump()),
});
// A tab that nobody sees holds no connection: browsers allow six for a whole portal.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => source.close(), 20000);
  else if (!source.stream.isWanted) source.resume();
});

parts.earlier.addEventListener("click", loadEarlier);
parts.jump.addEventListener("click", jump);
addEventListener("hashchange", () => {
  const place = namedPlace();
  if (place && !document.querySelector(location.hash)) begin(() => startAt(place));
  else mark();
});
forgetSent();
const place = namedPlace();
begin(place ? () => startAt(place) : start);
