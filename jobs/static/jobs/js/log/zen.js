// Only the log, in the full window. The address keeps it (?zen=1), so that a link leads to it.
const NAME = "zen";
const root = document.documentElement;

// `relaid()` is called when the log has another size.
export function bindZen(button, relaid) {
  const isOn = () => root.classList.contains(NAME);

  function set(on) {
    root.classList.toggle(NAME, on);
    button.setAttribute("aria-pressed", String(on));
    const address = new URL(location.href);
    if (on) address.searchParams.set(NAME, "1");
    else address.searchParams.delete(NAME);
    history.replaceState(null, "", address);
    relaid();
  }

  button.addEventListener("click", () => set(!isOn()));
  button.setAttribute("aria-pressed", String(isOn()));
  return { toggle: () => set(!isOn()), leave: () => (isOn() ? set(false) : false) };
}
