// Turns the tab links, which also work as plain links, into tabs: the log goes on beneath.
const list = document.querySelector("[data-tabs]");
const tabs = [...list.querySelectorAll("a")];

function panelOf(tab) {
  return document.getElementById(tab.dataset.panel);
}

function show(chosen) {
  for (const tab of tabs) {
    const selected = tab === chosen;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
    panelOf(tab).hidden = !selected;
  }
}

list.setAttribute("role", "tablist");
for (const tab of tabs) {
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", tab.dataset.panel);
  tab.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!panelOf(tab).hidden) return;
    show(tab);
    history.replaceState(null, "", tab.href);
  });
}
show(tabs.find((tab) => tab.hasAttribute("aria-current")) ?? tabs[0]);
for (const tab of tabs) tab.removeAttribute("aria-current");

list.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const here = tabs.indexOf(document.activeElement);
  const next = tabs[(here + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
});
