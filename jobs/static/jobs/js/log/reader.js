// Where the reader of the log is: at the newest lines, or around a line somewhere above them.
import { elementAt, placeOf } from "./places.js";

const PAGE = 1000;
const CONTEXT = 200;
const START = "0:0";
const AGAIN_MS = 3000;

export class Reader {
  // `on` has lost(sentence): the portal could not be asked, or said why not, and is asked again; and
  // reveal(element): let that line be seen.
  constructor(view, source, on) {
    Object.assign(this, { view, source, on });
    this.turn = 0;
  }

  // The newest lines, then whatever comes.
  follow() {
    return this.#begin((isPast) => this.#newest(isPast));
  }

  // The line at `place` in the middle of the box; what is around it is loaded when need be.
  async show(place) {
    this.view.stopFollowing();
    const isThere = elementAt(place);
    const isPast = await this.#begin((isPast) => isThere || this.#around(place, isPast));
    if (isPast) return;
    const element = elementAt(place);
    this.on.reveal(element);
    element?.scrollIntoView({ block: "center" });
  }

  async earlier() {
    const { first } = this.view;
    const { results, previous } = await this.source.page({ before: first, limit: PAGE });
    if (first !== this.view.first) return;
    this.view.prepend(results, { reachesStart: !previous });
  }

  // When nothing comes after these, new lines do.
  async later() {
    const { last } = this.view;
    const { results, next } = await this.source.page({ after: last, limit: PAGE });
    if (last !== this.view.last) return;
    this.view.extend(results, { attached: !next });
    if (next) return;
    this.source.open(this.view.last);
  }

  // The line at the top of what can be seen: {attempt, line}, or null.
  get top() {
    const edge = this.view.box.getBoundingClientRect().top;
    const lines = this.view.list.children;
    let [low, high] = [0, lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      // A hidden line has no position: use the line before it.
      let shown = middle;
      while (shown > low && !lines[shown].offsetHeight) shown--;
      if (lines[shown].getBoundingClientRect().bottom > edge) high = shown;
      else low = middle + 1;
    }
    if (low === lines.length) return null;
    const [attempt, line] = lines[low].dataset.place.split(":").map(Number);
    return { attempt, line };
  }

  // The stream goes on until then: a reader who goes elsewhere meanwhile still has it.
  async #newest(isPast) {
    const { results, previous } = await this.source.page({ before: "end", limit: PAGE });
    if (isPast()) return;
    this.view.replace(results, { attached: true, reachesStart: !previous });
    this.source.open(results.length ? placeOf(results.at(-1)) : START);
  }

  async #around({ attempt, line }, isPast) {
    const after = `${attempt}:${Math.max(0, line - CONTEXT)}`;
    let { results, next } = await this.source.page({ after, limit: PAGE });
    const end = results.at(-1);
    // Where lines are long, a page may end before it is there.
    if (next && end?.attempt === attempt && end.line < line)
      ({ results, next } = await this.source.page({ after: `${attempt}:${line - 1}`, limit: PAGE }));
    if (isPast()) return;
    if (!results.length) return this.#newest(isPast);
    const reachesStart = line <= CONTEXT && attempt === 1;
    this.view.replace(results, { attached: !next, reachesStart });
    this.view.stopFollowing();
    this.source.open(next ? null : placeOf(results.at(-1)));
  }

  // Reports a page that cannot be loaded, and retries until another one is requested. Returns
  // whether it was.
  async #begin(how) {
    const turn = ++this.turn;
    const isPast = () => turn !== this.turn;
    while (!isPast()) {
      try {
        await how(isPast);
        return isPast();
      } catch (error) {
        this.on.lost(error.sentence);
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
    return true;
  }
}
