// The list of the palette: a listbox whose options are grouped, one of which is chosen.
export class Results {
  // `pick(entry, isElsewhere)` is called when an option is clicked.
  constructor(list, query, pick) {
    Object.assign(this, { list, query, entries: [], at: -1 });
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) pick(this.entries[Number(option.dataset.index)], event.ctrlKey || event.metaKey);
    });
    // A click must not take the focus from the field.
    list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  get chosen() {
    return this.entries[this.at] ?? null;
  }

  // Shows the entries, group by group in the order of their first ones. The chosen one stays so.
  show(entries, { keep }) {
    const before = keep ? this.chosen : null;
    const groups = new Map();
    for (const entry of entries) {
      if (!groups.has(entry.group)) groups.set(entry.group, []);
      groups.get(entry.group).push(entry);
    }
    this.entries = [...groups.values()].flat();
    let index = 0;
    const sections = [...groups].map(([name, members], number) => {
      const section = element("div", { role: "group", "aria-labelledby": `palette-group-${number}` });
      section.append(element("div", { id: `palette-group-${number}`, class: "palette-group" }, name));
      for (const entry of members) section.append(optionOf(entry, index++));
      return section;
    });
    this.list.replaceChildren(...sections);
    const isSame = (entry) => entry.label === before?.label && entry.href === before?.href;
    this.choose(Math.max(0, this.entries.findIndex(isSame)));
  }

  step(by) {
    const count = this.entries.length;
    if (count) this.choose((this.at + by + count) % count);
  }

  choose(index) {
    const options = this.list.querySelectorAll("[role=option]");
    this.at = options.length ? index : -1;
    options.forEach((option, number) => option.setAttribute("aria-selected", String(number === index)));
    const option = options[index];
    if (option) this.query.setAttribute("aria-activedescendant", option.id);
    else this.query.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }
}

function optionOf(entry, index) {
  const option = element("div", { role: "option", id: `palette-option-${index}`, "data-index": index });
  option.append(element("span", {}, entry.label));
  if (entry.hint) option.append(element("span", { class: "palette-hint" }, entry.hint));
  return option;
}

function element(name, attributes, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}
