// The find bar: what is looked for, how many matches there are, and the way from one to the next.
// The search is kept in the page's address (?find=).
import { Finder } from "./finder.js";
import { Marks } from "./marks.js";
import { elementAt } from "./places.js";
import { searchOfAddress, keepInAddress } from "./search_address.js";

const TYPING_MS = 250;
const NEW_LINES_MS = 1000;
const OPTIONS = ["regex", "case"];

export class Find {
  // `on` has show(place): bring that line into view; back(): the reader is done with the bar.
  constructor(panel, list, source, on) {
    this.on = on;
    this.marks = new Marks(list);
    this.bar = panel.querySelector("[data-find]");
    this.words = this.bar.querySelector("input");
    this.level = this.bar.querySelector("select");
    this.count = this.bar.querySelector("output");
    this.finder = new Finder(source, (added) => this.#changed(added));
    this.bar.addEventListener("submit", (event) => event.preventDefault());
    this.bar.addEventListener("input", () => this.#later(TYPING_MS));
    this.bar.addEventListener("keydown", (event) => this.#pressed(event));
    for (const name of OPTIONS)
      this.#toggle(name).addEventListener("click", () => {
        this.#set(name, !this.#isSet(name));
        this.search();
      });
    this.bar.querySelector("[data-previous]").addEventListener("click", () => this.step(-1));
    this.bar.querySelector("[data-next]").addEventListener("click", () => this.step(1));
    this.bar.querySelector("[data-close]").addEventListener("click", () => this.close());
  }

  get isOpen() {
    return !this.bar.hidden;
  }

  open() {
    this.bar.hidden = false;
    this.words.focus();
    this.words.select();
  }

  close() {
    this.bar.hidden = true;
    this.words.value = this.level.value = "";
    this.search();
    this.on.back();
  }

  // Restores the search of the address. Returns true if there is one.
  fromAddress() {
    const asked = searchOfAddress();
    if (!asked) return false;
    this.words.value = asked.q;
    this.level.value = asked.level;
    for (const name of OPTIONS) this.#set(name, asked[name] === "true");
    this.bar.hidden = false;
    return true;
  }

  // Searches for the text. By default the first match after the top line is shown.
  async search({ show = true } = {}) {
    clearTimeout(this.typing);
    this.marks.clear();
    const query = { q: this.words.value, level: this.level.value };
    for (const name of OPTIONS) if (this.#isSet(name)) query[name] = "true";
    keepInAddress(query);
    this.isWaiting = show;
    if (query.q || query.level) await this.finder.start(query);
    else this.finder.clear();
    this.#showCount();
  }

  async step(by) {
    if (this.finder.problem || !this.finder.query) return;
    this.#show(await this.finder.step(by));
  }

  // Lines have come into the page: some of them may match.
  mark(elements) {
    for (const element of elements) {
      const spans = this.finder.spans.get(element.dataset.place);
      if (spans) this.marks.add(element, spans);
    }
  }

  // Lines have been written.
  grown() {
    if (!this.finder.query || this.going) return;
    this.going = setTimeout(() => {
      this.going = 0;
      if (this.finder.isBusy) this.grown();
      else this.finder.goOn();
    }, NEW_LINES_MS);
  }

  #toggle(name) {
    return this.bar.querySelector(`[data-${name}]`);
  }

  #isSet(name) {
    return this.#toggle(name).getAttribute("aria-pressed") === "true";
  }

  #set(name, on) {
    this.#toggle(name).setAttribute("aria-pressed", String(on));
  }

  #later(ms) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.search(), ms);
  }

  #pressed(event) {
    if (event.key === "Escape") this.close(event.preventDefault());
    if (event.key !== "Enter" || event.target !== this.words) return;
    if (this.words.value === this.finder.query?.q) this.step(event.shiftKey ? -1 : 1);
    else this.search();
  }

  #changed(added) {
    for (const line of added) {
      const element = elementAt(line);
      if (element) this.marks.add(element, line.spans);
    }
    if (this.isWaiting && this.finder.hits.length) {
      this.isWaiting = false;
      this.#show(this.finder.choose(this.on.top()));
    }
    this.#showCount();
  }

  #show(hit) {
    this.#showCount();
    if (hit) this.on.show(hit).then(() => this.marks.move(elementAt(hit)));
  }

  #showCount() {
    const { hits, current, isComplete, isBusy, problem, query } = this.finder;
    const many = `${hits.length.toLocaleString()}${isComplete ? "" : "+"}`;
    const none = isComplete ? "No match" : "Searching …";
    const said = hits.length ? `${(current + 1).toLocaleString()} of ${many}` : none;
    this.count.textContent = problem || (query ? said : "");
    this.count.classList.toggle("problem", Boolean(problem));
    this.bar.toggleAttribute("data-busy", isBusy);
    this.words.setAttribute("aria-invalid", String(Boolean(problem)));
  }
}
