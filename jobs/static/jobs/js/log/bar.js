// The bar above the log: rank chips, what is shown of a line, follow. Choices are remembered.
function remember(name, value) {
  try {
    localStorage.setItem(`log.${name}`, value);
  } catch {
    // A browser that keeps nothing still shows the log.
  }
}

function remembered(name) {
  try {
    return localStorage.getItem(`log.${name}`);
  } catch {
    return null;
  }
}

function bindToggle(button, box, relaid) {
  const name = button.dataset.toggle;
  const set = (on) => {
    box.classList.toggle(name, on);
    button.setAttribute("aria-pressed", String(on));
  };
  const before = remembered(name);
  if (before !== null) set(before === "yes");
  button.addEventListener("click", () => {
    const on = !box.classList.contains(name);
    set(on);
    remember(name, on ? "yes" : "no");
    relaid();
  });
}

// `on` has rank(text), relaid(), follow(), find() and firstError().
export function bindBar(panel, box, on) {
  for (const button of panel.querySelectorAll("[data-toggle]")) bindToggle(button, box, on.relaid);
  panel.querySelector("[data-follow]").addEventListener("click", on.follow);
  panel.querySelector("[data-opens-find]").addEventListener("click", on.find);
  panel.querySelector("[data-first-error]").addEventListener("click", on.firstError);
  const chips = [...panel.querySelectorAll("[data-rank]")];
  const others = panel.querySelector("[data-ranks]");
  const choose = (rank) => {
    for (const chip of chips) chip.setAttribute("aria-pressed", String(chip.dataset.rank === rank));
    if (others && chips.some((chip) => chip.dataset.rank === rank)) others.value = "";
    box.classList.toggle("one-rank", rank !== "");
    on.rank(rank);
  };
  for (const chip of chips) chip.addEventListener("click", () => choose(chip.dataset.rank));
  others?.addEventListener("change", () => choose(others.value));
}
