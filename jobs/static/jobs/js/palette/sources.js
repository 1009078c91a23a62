// What the palette finds: the portal's pages, the buttons of this page, and jobs.

export function pageEntries() {
  return JSON.parse(document.getElementById("palette").dataset.entries);
}

function textOf(element) {
  return (element.dataset.command ?? element.textContent).trim().replace(/\s+/g, " ");
}

// An entry presses the button itself, so that dialogs and forms are those of the page.
function entryOf(group, element, label = textOf(element)) {
  const isThere = () => element.isConnected && !element.hidden && !element.disabled;
  return { group, label, isThere, run: () => element.click() };
}

// The buttons of the page's head, its tabs, and what is marked as a command anywhere.
export function actionEntries() {
  const visible = (each) => each.checkVisibility();
  const buttons = [...document.querySelectorAll("main .actions :is(button, a)")].filter(visible);
  const tabs = [...document.querySelectorAll("[data-tabs] a")].filter(visible);
  const marked = [...document.querySelectorAll("[data-command]:not([hidden])")];
  const terminal = document.querySelector("[data-terminal]")?.dataset.terminal;
  const here = "This page";
  return [
    ...buttons.filter((each) => !each.dataset.command).map((each) => entryOf(here, each)),
    ...tabs.map((each) => entryOf(here, each, `Open ${textOf(each)}`)),
    ...(terminal ? [{ group: here, label: "Open a terminal", href: terminal }] : []),
    ...marked.map((each) => entryOf(each.closest("main") ? here : "General", each)),
  ];
}

// Jobs whose name contains the text, or whose number it is; that one comes first.
export async function jobEntries({ jobs, project }, query, signal) {
  const q = query.trim().replace(/^#/, "");
  if (!q) return [];
  const answer = await fetch(`${jobs}?${new URLSearchParams({ q, project })}`, {
    headers: { Accept: "application/json" }, signal,
  });
  if (!answer.ok) throw new Error(`The search failed with status ${answer.status}.`);
  const found = await answer.json();
  return found.jobs.map((job) => ({
    group: `Jobs of ${job.project}`,
    label: `${job.name} #${job.id}`,
    hint: job.status_label,
    href: job.href,
    isJob: true,
  }));
}
