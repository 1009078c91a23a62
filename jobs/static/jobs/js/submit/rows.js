// The rows of a field: the entries of a mapping or the items of a list, and an empty row for another.
// Each change is sent on its own, so that the server leaves all other rows as they were written.

function made(tag, properties) {
  return Object.assign(document.createElement(tag), properties);
}

// `write(field)` sends what `changeOf(field)` returns.
export function bindRows(box, write) {
  const { path, names, values, empty, example } = box.dataset;
  const list = box.querySelector(".entry-rows");
  let shown = [];

  function input(tag, kind, label) {
    const field = made(tag, { className: kind === "value" ? "mono" : "", placeholder: label, spellcheck: false });
    Object.assign(field.dataset, { kind, about: `${box.id}-about` });
    if (tag === "textarea") field.rows = 1;
    field.setAttribute("autocomplete", "off");
    field.setAttribute("aria-describedby", field.dataset.about);
    field.addEventListener("change", () => write(field));
    return field;
  }

  function row() {
    const element = made("div", { className: "entry-row" });
    if (names) element.append(input("input", "name", names));
    element.append(input("textarea", "value", example ?? values));
    const remove = made("button", { type: "button", className: "button small quiet remove", textContent: "×" });
    remove.dataset.kind = "remove";
    remove.addEventListener("click", () => {
      // The numbers of items change with it.
      list.inert = true;
      write(remove);
    });
    element.append(remove);
    return element;
  }

  function label(element, number) {
    const isNew = element.dataset.row === undefined;
    const whose = isNew ? `the new ${(names ?? values).toLowerCase()}` : names ? element.dataset.row : number + 1;
    const words = {
      name: isNew ? `New ${names?.toLowerCase()}` : `${names} ${whose}`,
      value: names ? `${values} of ${whose}` : isNew ? `New ${values.toLowerCase()}` : `${values} ${whose}`,
      remove: `Remove ${whose}`,
    };
    for (const field of element.querySelectorAll("[data-kind]")) {
      field.id = `${box.id}-${field.dataset.kind}-${number}`;
      field.setAttribute("aria-label", words[field.dataset.kind]);
    }
    element.querySelector(".remove").hidden = isNew;
  }

  function fill(element, name, value, isKept) {
    for (const field of element.querySelectorAll("input, textarea")) {
      if (isKept(field)) continue;
      const text = (field.dataset.kind === "name" ? name : value) ?? "";
      if (field.value !== text) field.value = text;
      if (field.tagName !== "TEXTAREA") continue;
      field.rows = Math.min(8, text.split("\n").length);
      field.placeholder = value === null ? empty : example ?? values;
    }
  }

  // Each element stays that of its entry, so that a change that waits is sent for the right one.
  function show(rows, isKept) {
    const before = new Map([...list.children].map((element) => [element.dataset.row, element]));
    const keys = [...rows.map(([name], number) => (names ? name : `${number}`)), undefined];
    const elements = keys.map((key) => before.get(key) ?? row());
    for (const element of before.values()) if (!elements.includes(element)) element.remove();
    elements.forEach((element, number) => {
      if (list.children[number] !== element) list.insertBefore(element, list.children[number] ?? null);
      if (keys[number] !== undefined) element.dataset.row = keys[number];
      // What was typed for a new one is not in the text yet.
      if (rows[number]) fill(element, ...rows[number], isKept);
      label(element, number);
    });
    shown = rows;
    if (!list.inert) return;
    list.inert = false;
    list.lastElementChild.querySelector("input, textarea").focus();
  }

  const textOf = (element, kind) => element.querySelector(`[data-kind=${kind}]`)?.value ?? "";

  // Null: there is nothing to send, or a part of a new row is missing.
  function changeOf(field) {
    const element = field.closest(".entry-row");
    const { kind } = field.dataset;
    if (kind === "remove") return { path };
    if (element.dataset.row !== undefined) return { path, [kind]: field.value };
    const change = names ? { name: textOf(element, "name") } : {};
    return isMissing(element) ? null : { path, ...change, value: textOf(element, "value") };
  }

  // The row that a change is of; none for a new one. An earlier change may have named it.
  const rowOf = (field) => {
    const { row: current } = field.closest(".entry-row").dataset;
    return current === undefined ? {} : { row: current };
  };

  // The change was made: the row may be new, or have another name.
  function accept(field, { name, row: current }) {
    const element = field.closest(".entry-row");
    if (names && name?.trim()) element.dataset.row = name.trim();
    else if (!names && current === undefined) element.dataset.row = [...list.children].indexOf(element);
  }

  function isMissing(element) {
    const [name, value] = [textOf(element, "name").trim(), textOf(element, "value")];
    return (names && !name) || (!value && (!names || empty === undefined));
  }

  // Brings back what the text has for a field; a new row becomes empty.
  function discard(field) {
    const element = field.closest(".entry-row");
    const entry = shown[[...list.children].indexOf(element)];
    fill(element, ...(entry ?? ["", ""]), (other) => entry && other !== field);
  }

  // The fields of a new row that lacks its name or its value.
  function incomplete() {
    const last = list.lastElementChild;
    if (!last || !isMissing(last)) return null;
    const typed = [...last.querySelectorAll("input, textarea")].find((field) => field.value);
    return typed ?? null;
  }

  const owns = (field) => list.contains(field);
  const release = () => (list.inert = false);
  return { path, show, changeOf, rowOf, accept, discard, incomplete, owns, release };
}
