// Where lines come from: pages of earlier ones over REST, new ones over one stream that takes up
// where it broke off.
import { Stream } from "../stream.js";

const TRIES = 5;
const BUSY_MS = 2000;

// What the portal says is wrong, in its own words.
async function sentenceOf(response) {
  try {
    return (await response.json()).detail;
  } catch {
    return `The log request failed with status ${response.status}`;
  }
}

export class LogSource {
  // `on` has lines(list), job(), end(), state(name).
  constructor(base, attempt, on) {
    Object.assign(this, { base, attempt, on });
    this.rank = "";
    this.newest = null;
    this.ended = false;
    this.stream = new Stream(() => `${base}/stream?${this.#query(this.#from())}`, {
      state: on.state,
      events: {
        line: (event) => {
          this.newest = event.lastEventId || this.newest;
          on.lines(JSON.parse(event.data));
        },
        job: () => on.job(),
        end: () => this.#end(),
      },
    });
  }

  // The newest lines, those before `before`, or those around a line: in order.
  async page({ before, after, limit = 1000 } = {}) {
    const query = this.#query({ before, after, limit });
    const response = await fetch(`${this.base}?${query}`, { headers: { Accept: "application/json" } });
    if (!response.ok) throw Object.assign(new Error(), { sentence: await sentenceOf(response) });
    return response.json();
  }

  // One stretch of a search. While the portal is busy with others it is asked again.
  async search(wish, signal) {
    for (let tries = 1; ; tries++) {
      const response = await fetch(`${this.base}/search?${this.#query(wish)}`, {
        headers: { Accept: "application/json" }, signal,
      });
      if (response.ok) return response.json();
      if (response.status !== 503 || tries === TRIES) throw new Error(await sentenceOf(response));
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
      signal?.throwIfAborted();
    }
  }

  // Lines after `place` from now on; without a place those that are not written yet.
  open(place) {
    this.newest = place ?? null;
    this.resume();
  }

  // Goes on behind the last line seen.
  resume() {
    if (!this.ended) this.stream.open();
  }

  close() {
    this.stream.close();
  }

  #end() {
    this.ended = true;
    this.close();
    this.on.end();
  }

  #from() {
    return this.newest ? { after: this.newest } : { tail: 0 };
  }

  #query(parameters) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...parameters, attempt: this.attempt, rank: this.rank }))
      if (value !== "" && value !== null && value !== undefined) query.set(name, value);
    return query;
  }
}
