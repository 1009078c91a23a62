// Groups of lines: from ::group:: to ::endgroup:: of the same rank and stream. One that is over is
// folded, unless something in it looks like an error; the reader's own choice goes before.
import { looksLikeError } from "./errors.js";

export class Folds {
  constructor(list) {
    this.list = list;
    this.chosen = new Map(); // place of a group's first line -> whether it is open
    list.addEventListener("click", (event) => {
      const button = event.target.closest("[data-fold] button.fold");
      if (button) this.#toggle(button);
    });
  }

  // Lines have come or gone.
  update() {
    const any = this.list.querySelector("[data-fold]");
    if (!any && !this.any) return;
    this.any = any;
    const open = new Map();
    for (const line of this.list.children) {
      const { fold, source } = line.dataset;
      const group = open.get(source);
      if (fold === "start") open.set(source, this.#begun(line, group));
      else if (!group) this.#show(line, true);
      else if (fold === "end") {
        this.#over(group, line);
        open.delete(source);
      } else group.lines.push(line);
    }
    for (const group of open.values()) this.#draw(group, { isOver: false });
  }

  // Opens the group that holds `line`, so that it can be seen.
  reveal(line) {
    if (!line?.classList.contains("folded")) return;
    const { source } = line.dataset;
    let first = line.previousElementSibling;
    while (first && !(first.dataset.fold === "start" && first.dataset.source === source))
      first = first.previousElementSibling;
    if (first) this.chosen.set(first.dataset.place, true);
    this.update();
  }

  // A group within a group ends the one before it.
  #begun(line, before) {
    if (before) this.#draw(before, { isOver: true });
    this.#show(line, true);
    return { first: line, lines: [] };
  }

  #over(group, end) {
    this.#show(end, false);
    this.#draw(group, { isOver: true });
  }

  #draw({ first, lines }, { isOver }) {
    const own = this.chosen.get(first.dataset.place);
    const open = own ?? (!isOver || lines.some((line) => looksLikeError(line)));
    const button = first.querySelector("button.fold");
    button.setAttribute("aria-expanded", String(open));
    button.dataset.count = `${lines.length.toLocaleString()} ${lines.length === 1 ? "line" : "lines"}`;
    for (const line of lines) this.#show(line, open);
  }

  #show(line, shown) {
    line.classList.toggle("folded", !shown);
  }

  #toggle(button) {
    const { place } = button.closest("li").dataset;
    this.chosen.set(place, button.getAttribute("aria-expanded") !== "true");
    this.update();
  }
}
