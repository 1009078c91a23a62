// The log of the job page: wires the window of lines to its source, to the bar above it and to what
// finds, names and folds lines.
import { report } from "./connection.js";
import { refreshSoon } from "./live.js";
import { bindBar } from "./log/bar.js";
import { Find } from "./log/find.js";
import { bindKeys } from "./log/keys.js";
import { NamedLines } from "./log/places.js";
import { Reader } from "./log/reader.js";
import { LogSource } from "./log/source.js";
import { LogWindow } from "./log/window.js";
import { forgetSent } from "./submit/draft.js";

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
  drawn(elements) {
    named.mark(elements);
    find.mark(elements);
  },
});

const source = new LogSource(panel.dataset.log, panel.dataset.attempt, {
  lines(lines) {
    view.append(lines);
    find.grown();
  },
  job: refreshSoon,
  state: showConnection,
  end() {
    showConnection("ended");
    parts.empty.textContent = "No lines were written.";
    refreshSoon();
  },
});

const reader = new Reader(view, source, () => showConnection("lost"));
const named = new NamedLines(parts.list);
const find = new Find(panel, parts.list, source, {
  show: (place) => reader.show(place),
  top: () => (view.following ? null : reader.top),
  back: () => parts.box.focus(),
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

async function loadEarlier() {
  if (parts.earlier.disabled) return;
  parts.earlier.disabled = true;
  try {
    await reader.earlier();
  } finally {
    parts.earlier.disabled = false;
  }
}

function jump() {
  if (view.attached) view.follow();
  else reader.follow();
}

bindBar(panel, parts.box, {
  async rank(rank) {
    source.rank = rank;
    source.ended = false;
    parts.empty.textContent = "No lines of this rank yet.";
    await reader.follow();
    find.search({ show: false });
  },
  relaid: () => view.following && view.follow(),
  follow: () => (view.following ? view.stopFollowing() : jump()),
  find: () => (find.isOpen ? find.close() : find.open()),
});
function press(what) {
  panel.querySelector(what)?.click();
}

bindKeys(panel, {
  "/": () => find.open(),
  f: () => find.open(),
  n: () => find.step(1),
  N: () => find.step(-1),
  G: jump,
  t: () => press("[data-toggle=times]"),
  w: () => press("[data-toggle=wrap]"),
  "?": () => document.getElementById("log-keys").showModal(),
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
  const lines = named.read();
  if (lines) reader.show(lines);
});

async function begin() {
  const asked = find.fromAddress();
  // An address of a line of another attempt than the page's: all attempts are shown.
  if (named.named && source.attempt && String(named.named.attempt) !== source.attempt)
    source.attempt = "";
  if (named.named) await reader.show(named.named);
  else await reader.follow();
  if (asked) find.search({ show: !named.named });
}

forgetSent();
begin();
