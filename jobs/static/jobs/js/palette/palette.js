// The command palette: finds jobs, pages and the actions of this page by name.
import { rank } from "./rank.js";
import { recentEntries, remember } from "./recent.js";
import { Results } from "./results.js";
import { actionEntries, jobEntries, pageEntries } from "./sources.js";

const TYPING_MS = 120;
let loading = null;

export async function openPalette(address) {
  loading ??= load(address).catch((error) => {
    loading = null;
    throw error;
  });
  (await loading).toggle();
}

async function load(address) {
  const answer = await fetch(address, { redirect: "manual" });
  // Signed out, or no member any more: the page itself shows it best.
  if (answer.type === "opaqueredirect" || answer.status === 404) location.reload();
  if (!answer.ok) throw new Error("The palette cannot be loaded.");
  const template = document.createElement("template");
  template.innerHTML = await answer.text();
  const style = template.content.querySelector("link");
  const isStyled = new Promise((resolve) => (style.onload = style.onerror = resolve));
  document.head.append(style);
  document.body.append(template.content);
  await isStyled;
  return new Palette(document.getElementById("palette"));
}

class Palette {
  constructor(dialog) {
    this.dialog = dialog;
    this.query = dialog.querySelector("input");
    this.state = document.getElementById("palette-state");
    this.pages = pageEntries();
    this.results = new Results(document.getElementById("palette-list"), this.query, this.#run.bind(this));
    this.query.addEventListener("input", () => this.#typed());
    this.query.addEventListener("keydown", (event) => this.#pressed(event));
    dialog.addEventListener("close", () => this.#stop());
  }

  toggle() {
    if (this.dialog.open) return this.dialog.close();
    this.query.value = "";
    this.actions = actionEntries();
    this.#typed();
    this.dialog.showModal();
    this.query.focus();
  }

  // No search goes on, and none opens what it finds.
  #stop() {
    clearTimeout(this.typing);
    this.aborter?.abort();
    this.isAwaited = false;
  }

  #typed() {
    this.#stop();
    this.jobs = [];
    this.isMoved = false;
    this.problem = "";
    this.isSearching = Boolean(this.query.value.trim());
    if (this.isSearching) this.typing = setTimeout(() => this.#search(), TYPING_MS);
    this.#show();
  }

  async #search() {
    const aborter = (this.aborter = new AbortController());
    try {
      this.jobs = await jobEntries(this.dialog.dataset, this.query.value, aborter.signal);
    } catch (error) {
      if (aborter.signal.aborted) return;
      this.problem = "Jobs cannot be searched now. Try again.";
    }
    this.isSearching = false;
    this.#show();
    if (this.isAwaited && this.results.chosen) this.#run(this.results.chosen, false);
  }

  #show() {
    const query = this.query.value.trim();
    const isGeneral = ({ group }) => group === "General";
    const here = this.actions.filter((entry) => !isGeneral(entry));
    const others = [...here, ...this.pages, ...this.actions.filter(isGeneral)];
    const found = query ? ranked(query, others) : [...recent(others), ...others];
    // Who types a number means a job.
    const isNumber = /^#?\d+$/.test(query);
    const entries = isNumber ? [...this.jobs, ...found] : [...found, ...this.jobs];
    this.results.show(entries, { keep: this.isMoved });
    const count = entries.length;
    const words = count ? `${count} ${count === 1 ? "result" : "results"}` : "Nothing found";
    this.state.textContent = this.problem || (this.isSearching ? "Searching jobs…" : words);
  }

  #pressed(event) {
    // These keys choose and confirm letters of an input method.
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.isMoved = true;
      this.results.step(step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      // The answer that is under way may have what was typed.
      if (this.results.chosen) this.#run(this.results.chosen, event.ctrlKey || event.metaKey);
      else this.isAwaited = this.isSearching;
    }
  }

  #tellRemoved({ label }) {
    this.actions = actionEntries();
    this.problem = `"${label}" is not on this page any more.`;
    this.#show();
  }

  #run(entry, isElsewhere) {
    const found = entry.href ? entry : present(entry);
    if (!found) return this.#tellRemoved(entry);
    remember(entry);
    this.dialog.close();
    if (!entry.href) found.run();
    else if (isElsewhere) open(entry.href);
    else location.assign(entry.href);
  }
}

// The page may have changed since the palette was opened, and may have a new button in place of one.
function present(entry) {
  const isSame = ({ label, run }) => run && label === entry.label;
  return entry.isThere() ? entry : actionEntries().find(isSame);
}

function ranked(query, entries) {
  const fits = entries.map((entry) => ({ entry, fit: rank(query, `${entry.label} ${entry.group}`) }));
  return fits.filter(({ fit }) => fit).sort((a, b) => b.fit - a.fit).map(({ entry }) => entry);
}

// Of the entries chosen last those that there are on this page; jobs are not listed.
function recent(entries) {
  const find = (kept) =>
    kept.isJob ? kept : entries.find(({ label, href }) => label === kept.label && href === kept.href);
  const found = recentEntries().map(find).filter(Boolean);
  return found.map((entry) => ({ ...entry, group: "Recent", hint: entry.group }));
}
