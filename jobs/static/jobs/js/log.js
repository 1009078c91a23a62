// The log of the job page: wires the window of lines to its source, to the bar above it and to what
// finds, names and folds lines.
import { refreshSoon } from "./live.js";
import { bindBar } from "./log/bar.js";
import { Find } from "./log/find.js";
import { firstError } from "./log/errors.js";
import { Folds } from "./log/folds.js";
import { bindLogKeys } from "./log/keys.js";
import { OwnLines } from "./log/own_lines.js";
import { bindPages } from "./log/pages.js";
import { NamedLines } from "./log/places.js";
import { Reader } from "./log/reader.js";
import { LogSource } from "./log/source.js";
import { showConnection } from "./log/state.js";
import { LogWindow } from "./log/window.js";
import { bindZen } from "./log/zen.js";

const panel = document.querySelector("[data-log]");
const page = document.getElementById("job-page");
const parts = {
  box: document.getElementById("log"),
  list: document.getElementById("log-lines"),
  empty: document.getElementById("log-empty"),
  state: document.getElementById("log-state"),
  earlier: panel.querySelector("[data-earlier]"),
  later: panel.querySelector("[data-later]"),
  jump: panel.querySelector("[data-jump]"),
  follow: panel.querySelector("[data-follow]"),
};

const showStream = (state) => showConnection(parts.state, page, state);

const view = new LogWindow(parts.box, parts.list, {
  rankColumn: Boolean(panel.querySelector("[data-rank]")),
  changed: showState,
  drawn(elements) {
    own.mark(elements);
    named.mark(elements);
    find.mark(elements);
    folds.update();
    own.update();
  },
});

const source = new LogSource(panel.dataset.log, panel.dataset.attempt, {
  lines(lines) {
    view.append(lines);
    find.grown();
  },
  job: refreshSoon,
  state: showStream,
  end() {
    showStream("ended");
    // Where a log was removed, the page says that instead.
    const isRemoved = document.getElementById("log-removed");
    parts.empty.textContent = isRemoved ? "" : "No lines were written.";
    refreshSoon();
  },
});

const folds = new Folds(parts.list);
const own = new OwnLines(parts.list, panel.dataset.ownLine);
const reader = new Reader(view, source, {
  lost(sentence) {
    showStream("lost");
    if (sentence) parts.empty.textContent = sentence;
    showState();
  },
  reveal(element) {
    folds.reveal(element);
    own.reveal(element);
  },
});
const named = new NamedLines(parts.list, panel.querySelector("[data-charts-at]"));
const find = new Find(panel, parts.list, source, {
  show: (place) => reader.show(place),
  top: () => (view.following ? null : reader.top),
  back: () => parts.box.focus(),
});

function showState() {
  parts.empty.hidden = !view.isEmpty;
  parts.earlier.hidden = view.reachesStart || view.isEmpty;
  parts.later.hidden = view.attached || view.isEmpty;
  parts.follow.setAttribute("aria-pressed", String(view.following));
  parts.jump.hidden = view.following || view.isEmpty;
  const count = view.pending.toLocaleString();
  parts.jump.textContent = view.pending ? `Jump to newest · ${count} new` : "Jump to newest";
}

const relaid = () => view.following && view.follow();
const jump = () => (view.attached ? view.follow() : reader.follow());

bindBar(panel, parts.box, {
  async rank(rank) {
    source.rank = rank;
    source.ended = false;
    parts.empty.textContent = "No lines of this node yet.";
    await reader.follow();
    find.search({ show: false });
  },
  relaid,
  follow: () => (view.following ? view.stopFollowing() : jump()),
  firstError: showFirstError,
  find: () => (find.isOpen ? find.close() : find.open()),
});
// The first line that looks like an error, named in the address, so that it can be sent.
async function showFirstError() {
  const button = panel.querySelector("[data-first-error]");
  const found = await firstError(source).catch(() => undefined);
  const failed = found === undefined;
  button.textContent = found ? "First error" : failed ? "First error: try again" : "No error found";
  if (found) reader.show(named.name(found));
}

const zen = bindZen(panel.querySelector("[data-zen]"), relaid);

bindLogKeys(panel, { find, jump, showFirstError, zen });
// A hidden tab holds no connection: browsers allow six for a whole portal.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => source.close(), 20000);
  else if (!source.stream.isWanted) source.resume();
});

bindPages(panel, reader);
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

begin();
