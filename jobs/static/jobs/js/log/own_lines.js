// Lines that Monarch printed about itself fold: a run of them is one row, which opens at a click.
// Which lines these are: the pattern in the page, from monarch_client/runner/vocabulary/monarch_lines.py.
const NAME = "Monarch's own output";

export class OwnLines {
  constructor(list, pattern) {
    Object.assign(this, { list, pattern: new RegExp(pattern), opened: new Set() });
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button.own-fold");
      if (button) this.#open(this.#runOf(button.closest("li")), button.ariaExpanded !== "true");
    });
  }

  // Lines have come into the page.
  mark(elements) {
    for (const element of elements)
      if (this.pattern.test(element.querySelector(".t").textContent)) element.dataset.own = "";
  }

  // Lines have come or gone: runs may begin elsewhere.
  update() {
    let run = [];
    for (const line of this.list.querySelectorAll("[data-own]")) {
      if (run.length && line.previousElementSibling !== run.at(-1)) run = this.#draw(run);
      run.push(line);
    }
    this.#draw(run);
  }

  // Opens the run that has `line`, so that it can be seen.
  reveal(line) {
    if (line && "own" in line.dataset) this.#open(this.#runOf(line), true);
  }

  #runOf(line) {
    let first = line;
    while ("own" in (first.previousElementSibling?.dataset ?? {})) first = first.previousElementSibling;
    const run = [];
    for (let each = first; "own" in (each?.dataset ?? {}); each = each.nextElementSibling) run.push(each);
    return run;
  }

  #open(run, isOpen) {
    for (const { dataset } of run)
      if (isOpen) this.opened.add(dataset.place);
      else this.opened.delete(dataset.place);
    this.#draw(run);
  }

  #draw(run) {
    const isOpen = run.some((line) => this.opened.has(line.dataset.place));
    run.forEach((line, index) => {
      line.classList.toggle("own-first", index === 0);
      line.classList.toggle("own-folded", !isOpen);
      const button = line.querySelector(".own-fold");
      if (index) button?.remove();
      else this.#show(button ?? buttonOf(line), isOpen, run.length);
    });
    return [];
  }

  #show(button, isOpen, count) {
    button.ariaExpanded = String(isOpen);
    button.dataset.count = `${count.toLocaleString()} ${count === 1 ? "line" : "lines"}`;
  }
}

function buttonOf(line) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "fold own-fold";
  button.textContent = NAME;
  line.querySelector(".t").before(button);
  return button;
}
