// Where the reader of the log is: at the newest lines, or around a line somewhere above them.
import { elementAt, placeOf } from "./places.js";

const PAGE = 1000;
const CONTEXT = 200;
const START = "0:0";
const AGAIN_MS = 3000;

export class Reader {
  // `on` has lost(): the portal could not be asked and is asked again; and reveal(element): let
  // that line be seen.
  constructor(view, source, on) {
    Object.assign(this, { view, source, on });
    this.turn = 0;
  }

  // The newest lines, then whatever comes.
  follow() {
    return this.#begin(() => this.#newest());
  }

  // The line at `place` in the middle of the box; what is around it is loaded when need be.
  async show(place) {
    this.view.stopFollowing();
    if (!elementAt(place)) await this.#begin(() => this.#around(place));
    const element = elementAt(place);
    this.on.reveal(element);
    element?.scrollIntoView({ block: "center" });
  }

  async earlier() {
    const { results, previous } = await this.source.page({ before: this.view.first, limit: PAGE });
    this.view.prepend(results, { reachesStart: !previous });
  }

  // When nothing comes after these, new lines do.
  async later() {
    const { results, next } = await this.source.page({ after: this.view.last, limit: PAGE });
    this.view.extend(results, { attached: !next });
    if (next) return;
    this.source.close();
    this.source.open(this.view.last);
  }

  // The line at the top of what can be seen: {attempt, line}, or null.
  get top() {
    const edge = this.view.box.getBoundingClientRect().top;
    const lines = this.view.list.children;
    let [low, high] = [0, lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lines[middle].getBoundingClientRect().bottom > edge) high = middle;
      else low = middle + 1;
    }
    if (low === lines.length) return null;
    const [attempt, line] = lines[low].dataset.place.split(":").map(Number);
    return { attempt, line };
  }

  async #newest() {
    this.source.close();
    const { results, previous } = await this.source.page({ before: "end", limit: PAGE });
    this.view.replace(results, { attached: true, reachesStart: !previous });
    this.source.open(results.length ? placeOf(results.at(-1)) : START);
  }

  async #around({ attempt, line }) {
    const after = `${attempt}:${Math.max(0, line - CONTEXT)}`;
    const { results, next } = await this.source.page({ after, limit: PAGE });
    if (!results.length) return this.#newest();
    const reachesStart = line <= CONTEXT && attempt === 1;
    this.view.replace(results, { attached: !next, reachesStart });
    this.view.stopFollowing();
    this.source.open(next ? null : placeOf(results.at(-1)));
  }

  // A page that can't be had is told, and tried again until the reader wants another one.
  async #begin(how) {
    const turn = ++this.turn;
    while (turn === this.turn) {
      try {
        return await how();
      } catch {
        this.on.lost();
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }
}
