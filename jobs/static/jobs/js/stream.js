// A live stream that comes back by itself: after an error, after silence, after the computer slept,
// and at once when the browser is online again.
const RETRY_MS = [1000, 2000, 4000, 8000];
// The server says something every 15 s: silence for longer is a connection that has died unseen.
const SILENCE_MS = 40000;
const CHECK_MS = 5000;

export class Stream {
  // `address()` is asked whenever it connects. `on` has state("live" | "lost") and events: functions
  // by the event's name.
  constructor(address, on) {
    Object.assign(this, { address, on, failures: 0, source: null });
    addEventListener("offline", () => this.isWanted && this.#broke());
    addEventListener("online", () => this.isWanted && this.open());
    setInterval(() => this.#check(), CHECK_MS);
  }

  get isWanted() {
    return Boolean(this.source || this.retry);
  }

  // From now on; a second call starts over.
  open() {
    this.close();
    this.heardAt = Date.now();
    this.source = new EventSource((this.url = this.address()));
    this.source.onopen = () => {
      this.failures = 0;
      this.heardAt = Date.now();
      this.on.state("live");
    };
    this.source.onerror = () => this.#broke();
    for (const [name, hear] of Object.entries({ beat() {}, ...this.on.events }))
      this.source.addEventListener(name, (event) => {
        this.heardAt = Date.now();
        hear(event);
      });
  }

  // Starts over if the address is another one by now.
  follow() {
    if (this.isWanted && this.address() !== this.url) this.open();
  }

  close() {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = this.retry = null;
  }

  // The browser's own retry would ask with the first address, and not at all after some answers.
  #broke() {
    this.close();
    this.on.state("lost");
    const wait = RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)];
    // A restart breaks all tabs at one moment: they are not to come back at one.
    this.retry = setTimeout(() => this.open(), wait * (0.25 + Math.random()));
  }

  #check() {
    if (this.source && Date.now() - this.heardAt > SILENCE_MS) this.#broke();
  }
}
