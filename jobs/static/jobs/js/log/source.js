// Where lines come from: pages of earlier ones over REST, new ones over one stream that takes up
// where it broke off.
const RETRY_MS = [500, 1000, 2000, 5000, 10000];

export class LogSource {
  // `on` has lines(list), job(), end(), state(name).
  constructor(base, attempt, on) {
    Object.assign(this, { base, attempt, on });
    this.rank = "";
    this.newest = null;
    this.failures = 0;
    this.ended = false;
  }

  // The newest lines, those before `before`, or those around a line: in order.
  async page({ before, after, limit = 1000 } = {}) {
    const query = this.#query({ before, after, limit });
    const response = await fetch(`${this.base}?${query}`, { headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(`The log answered ${response.status}`);
    return response.json();
  }

  // Lines after `place` from now on. A second call starts over from there.
  open(place) {
    this.close();
    if (place) this.newest = place;
    if (this.ended) return;
    this.stream = new EventSource(`${this.base}/stream?${this.#query({ after: this.newest })}`);
    this.stream.onopen = () => {
      this.failures = 0;
      this.on.state("live");
    };
    this.stream.addEventListener("line", (event) => {
      this.newest = event.lastEventId || this.newest;
      this.on.lines(JSON.parse(event.data));
    });
    this.stream.addEventListener("job", () => this.on.job());
    this.stream.addEventListener("end", () => {
      this.ended = true;
      this.close();
      this.on.end();
    });
    this.stream.onerror = () => this.#broke();
  }

  close() {
    clearTimeout(this.retry);
    this.stream?.close();
    this.stream = null;
  }

  // The browser's own retry would ask with the first address; ours names the last line seen.
  #broke() {
    this.close();
    this.on.state("lost");
    const wait = RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)];
    this.retry = setTimeout(() => this.open(), wait);
  }

  #query(parameters) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...parameters, attempt: this.attempt, rank: this.rank }))
      if (value !== "" && value !== null && value !== undefined) query.set(name, value);
    return query;
  }
}
