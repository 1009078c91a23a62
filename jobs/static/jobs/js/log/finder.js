// The matches of one search, found on the server, stretch by stretch. What is kept of each is its
// place and where in the line it is: a log of millions of lines does not fit into a page.
const EAGER = 5000; // matches that are searched for without a request for more
const PAGE = 1000;

export class Finder {
  // `changed(added)` is called when matches were added, or something else about them changed.
  constructor(source, changed) {
    Object.assign(this, { source, changed });
    this.clear();
  }

  clear() {
    this.aborter?.abort();
    this.query = null;
    this.hits = []; // {attempt, line}, in order
    this.spans = new Map(); // "attempt:line" -> where it matches
    this.current = -1;
    this.after = ""; // how far was looked
    this.isComplete = false; // up to the newest line
    this.isBusy = false;
    this.problem = "";
  }

  get hit() {
    return this.hits[this.current] ?? null;
  }

  async start(query) {
    this.clear();
    this.query = query;
    await this.more(EAGER);
  }

  // Goes on until there are `upTo` matches or no line is left.
  async more(upTo = this.hits.length + PAGE) {
    if (!this.query || this.isBusy) return;
    const aborter = (this.aborter = new AbortController());
    this.isBusy = true;
    this.problem = "";
    try {
      do await this.#stretch(aborter.signal);
      while (!this.isComplete && this.hits.length < upTo);
    } catch (error) {
      if (aborter.signal.aborted) return;
      this.problem = error.message;
    }
    this.isBusy = false;
    this.changed([]);
  }

  // Lines were written: what matches among them belongs to it as well.
  async goOn() {
    if (this.isComplete) await this.more();
  }

  async #stretch(signal) {
    const { results, next, last } = await this.source.search(
      { ...this.query, after: this.after, limit: PAGE }, signal,
    );
    // A search that was given up while its answer came adds nothing to the next one.
    signal.throwIfAborted();
    this.after = last;
    this.isComplete = !next;
    for (const { attempt, line, spans } of results) {
      this.hits.push({ attempt, line });
      this.spans.set(`${attempt}:${line}`, spans);
    }
    this.changed(results);
  }

  // Makes the first match at or behind a place the current one; without a place the first.
  choose(place) {
    const found = place
      ? this.hits.findIndex((hit) => hit.attempt > place.attempt ||
          (hit.attempt === place.attempt && hit.line >= place.line))
      : 0;
    this.current = this.hits.length ? Math.max(0, found) : -1;
    return this.hit;
  }

  async step(by) {
    // The next one is being looked for.
    if (by > 0 && this.isBusy && this.current === this.hits.length - 1) return this.hit;
    if (by > 0 && this.current === this.hits.length - 1 && !this.isComplete) await this.more();
    const count = this.hits.length;
    if (count) this.current = (this.current + by + count) % count;
    return this.hit;
  }
}
