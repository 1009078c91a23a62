// Addresses of lines: #A2-L120, or #A2-L120-L140 for several of attempt 2. A line's number never
// changes, so that an address holds whatever is written later.
const SEVERAL = /^#A(\d{1,9})-L(\d{1,15})(?:-L(\d{1,15}))?$/;
// As earlier versions wrote them: #L120, #L2-120.
const OLD = /^#L(?:(\d{1,9})-)?(\d{1,15})$/;

export function placeOf(line) {
  return `${line.attempt}:${line.line}`;
}

export function anchorOf({ attempt, line }) {
  return `A${attempt}-L${line}`;
}

export function elementAt({ attempt, line }) {
  return document.getElementById(anchorOf({ attempt, line }));
}

function numbersOf(element) {
  const [attempt, line] = element.dataset.place.split(":").map(Number);
  return { attempt, line };
}

// The lines that an address names: {attempt, line, to}, or null.
export function namedLines(hash) {
  const old = OLD.exec(hash);
  if (old) return { attempt: Number(old[1] ?? 1), line: Number(old[2]), to: Number(old[2]) };
  const found = SEVERAL.exec(hash);
  if (!found) return null;
  const ends = [Number(found[2]), Number(found[3] ?? found[2])].sort((a, b) => a - b);
  return { attempt: Number(found[1]), line: ends[0], to: ends[1] };
}

// Lines that the address names stand out; a click on a number names one, with shift a range.
export class NamedLines {
  // `charts`: a link to the charts, which leads to the time of the first of the lines.
  constructor(list, charts) {
    this.list = list;
    this.charts = charts;
    this.anchor = null; // where a range begins
    this.named = namedLines(location.hash);
    list.addEventListener("click", (event) => this.#clicked(event));
  }

  // After the address changed: what it names now.
  read() {
    this.named = namedLines(location.hash);
    for (const element of this.list.querySelectorAll(".target")) element.classList.remove("target");
    this.mark(this.list.children);
    return this.named;
  }

  mark(elements) {
    if (!this.named) return;
    const { attempt, line, to } = this.named;
    for (const element of elements) {
      const own = numbersOf(element);
      if (own.attempt === attempt && own.line >= line && own.line <= to)
        element.classList.add("target");
      if (own.attempt === attempt && own.line === line) this.#link(attempt, element);
    }
  }

  // Makes the lines from `place` to `last` those that the address names.
  name(place, last = place.line) {
    const range = last === place.line ? "" : `-L${last}`;
    history.replaceState(null, "", `#${anchorOf(place)}${range}`);
    this.read();
    return place;
  }

  #link(attempt, element) {
    this.charts.search = new URLSearchParams({ attempt, at: element.dataset.at });
    this.charts.hidden = false;
  }

  #clicked(event) {
    const number = event.target.closest("a.n");
    if (!number || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const chosen = numbersOf(number.parentElement);
    const from = event.shiftKey && this.anchor?.attempt === chosen.attempt ? this.anchor : chosen;
    this.anchor = from;
    const [first, last] = [from.line, chosen.line].sort((a, b) => a - b);
    this.name({ attempt: chosen.attempt, line: first }, last);
    // What shift-click would select is not what the reader meant.
    if (event.shiftKey) getSelection().removeAllRanges();
  }
}
