// The part of the log that is in the page: a run of lines, never more than some thousands.
// It follows the newest lines while its reader is at the bottom, and does not move otherwise.
import { lineElement } from "./line.js";
import { hideOverdrawn } from "./overdrawn.js";

const MOST = 4000;
const TRIM = 500;
const AT_BOTTOM_PX = 24;

export class LogWindow {
  // `changed` is called whenever following, pending or attached may have changed; `drawn` with
  // every line that came into the page, before the page is scrolled.
  constructor(box, list, { rankColumn, changed, drawn }) {
    Object.assign(this, { box, list, rankColumn, changed, drawn });
    this.following = true; // at the bottom, moving along
    this.attached = true; // the last line in the page is the newest there is
    this.pending = 0; // lines that came while the reader looked elsewhere
    this.reachesStart = false; // the first line in the page is the first there is
    this.queue = [];
    this.open = new Map(); // lines at the end that go on, by their source
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#stick()).observe(list);
  }

  get first() {
    return this.list.firstElementChild?.dataset.place ?? null;
  }

  get last() {
    return this.list.lastElementChild?.dataset.place ?? null;
  }

  get isEmpty() {
    return !this.list.firstElementChild && !this.queue.length;
  }

  // New lines at the end. Bursts are drawn once a frame.
  append(lines) {
    if (!this.following) this.pending += lines.length;
    if (this.attached) {
      this.queue.push(...lines);
      // What would be trimmed at once need not be drawn.
      const excess = this.queue.length - MOST;
      if (this.following && excess > 0) {
        this.queue.splice(0, excess);
        this.list.replaceChildren();
        this.reachesStart = false;
      }
      this.frame ??= requestAnimationFrame(() => this.#draw());
    }
    this.changed();
  }

  // Earlier lines on top; what the reader looks at stays where it is.
  prepend(lines, { reachesStart }) {
    this.reachesStart = reachesStart;
    const below = this.box.scrollHeight - this.box.scrollTop;
    const elements = this.#elements(lines, new Map());
    this.list.prepend(...elements);
    this.drawn(elements);
    const excess = this.list.childElementCount - 2 * MOST;
    this.box.scrollTop = this.box.scrollHeight - below;
    if (excess > 0) {
      this.#remove(excess, "lastElementChild");
      this.attached = false;
    }
    this.changed();
  }

  // Later lines at the end of a window that is above the newest ones.
  extend(lines, { attached }) {
    const elements = this.#elements(lines);
    this.list.append(...elements);
    this.drawn(elements);
    const excess = Math.max(0, this.list.childElementCount - 2 * MOST);
    const below = this.box.scrollHeight - this.box.scrollTop;
    this.#remove(excess, "firstElementChild");
    this.box.scrollTop = this.box.scrollHeight - below;
    this.reachesStart &&= !excess;
    this.attached = attached;
    if (attached) this.pending = 0;
    this.changed();
  }

  // Start over with `lines`. `attached`: they are the newest ones.
  replace(lines, { attached, reachesStart }) {
    this.reachesStart = reachesStart;
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.queue = [];
    this.open.clear();
    const elements = this.#elements(lines);
    this.list.replaceChildren(...elements);
    this.drawn(elements);
    this.attached = this.following = attached;
    this.pending = 0;
    // What is shown beside the lines comes first: it takes room.
    this.changed();
    this.#stick();
  }

  follow() {
    this.following = true;
    this.pending = 0;
    this.changed();
    this.#stick();
  }

  stopFollowing() {
    this.following = false;
    this.changed();
  }

  #draw() {
    this.frame = undefined;
    const elements = this.#elements(this.queue.splice(0));
    this.list.append(...elements);
    const excess = this.list.childElementCount - MOST;
    if (this.following && excess > TRIM) {
      this.#remove(excess, "firstElementChild");
      this.reachesStart = false;
    } else if (excess > MOST) this.attached = false;
    this.drawn(elements);
    this.changed();
    this.#stick();
  }

  #elements(lines, open = this.open) {
    const elements = lines.map((line) => lineElement(line, this));
    hideOverdrawn(lines, elements, open);
    return elements;
  }

  #remove(count, which) {
    for (let i = 0; i < count; i++) this.list[which].remove();
  }

  #stick() {
    if (this.following) this.box.scrollTop = this.box.scrollHeight;
  }

  #scrolled() {
    const rest = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight;
    const atBottom = rest < AT_BOTTOM_PX && this.attached;
    if (atBottom === this.following) return;
    this.following = atBottom;
    if (atBottom) this.pending = 0;
    this.changed();
  }
}
