// The job table: rows that lead to their job, and the selection with its bar of actions.
const FEWEST_COMPARED = 2, MOST_COMPARED = 6;
const form = document.querySelector("[data-bulk]");
const boxes = () => [...document.querySelectorAll("[data-pick]")];
const picked = () => boxes().filter((box) => box.checked);
// The box of the last click, from which a click with Shift selects on.
let anchor = null;

function show() {
  if (!form) return;
  const count = picked().length;
  form.hidden = !count;
  form.querySelector("[data-bulk-count]").textContent = `${count} ${count === 1 ? "job" : "jobs"} selected`;
  form.querySelector("[data-bulk-clear]").hidden = !count;
  form.querySelector("[data-compare]").disabled = count < FEWEST_COMPARED || count > MOST_COMPARED;
  const all = document.querySelector("[data-pick-all]");
  if (all) {
    all.checked = count > 0 && count === boxes().length;
    all.indeterminate = count > 0 && !all.checked;
  }
}

function pickAll(isOn) {
  for (const box of boxes()) box.checked = isOn;
  show();
}

document.addEventListener("click", (event) => {
  const box = event.target.closest("[data-pick]");
  if (box) pickRange(box, event.shiftKey);
  else if (event.target.closest("[data-pick-all]")) pickAll(event.target.checked);
  else if (event.target.closest("[data-bulk-clear]")) clear();
  else openRow(event);
});

// The button goes with the selection, and the focus to where one begins.
function clear() {
  pickAll(false);
  document.querySelector("[data-pick-all]")?.focus();
}

function pickRange(box, isRange) {
  const all = boxes();
  const [from, to] = [all.indexOf(anchor), all.indexOf(box)].sort((a, b) => a - b);
  if (isRange && from >= 0) for (const each of all.slice(from, to + 1)) each.checked = box.checked;
  anchor = box;
  show();
}

// A click beside the links of a row opens its job, unless it selected text.
function openRow(event) {
  const row = event.target.closest(".jobs tbody tr");
  if (!row || event.target.closest("a, button, input, label, summary, .c-pick")) return;
  if (String(getSelection())) return;
  const link = row.querySelector(".name a");
  if (event.ctrlKey || event.metaKey || event.shiftKey) open(link.href);
  else link.click();
}

document.addEventListener("auxclick", (event) => {
  const row = event.button === 1 && event.target.closest(".jobs tbody tr");
  if (row && !event.target.closest("a, input")) open(row.querySelector(".name a").href);
});

// Days and "Last 7 days" exclude each other.
document.addEventListener("change", ({ target }) => {
  const { from, to, since } = target.form?.elements ?? {};
  if (!since) return;
  if (target === since) from.value = to.value = "";
  else if (target === from || target === to) since.value = "";
}, { capture: true });

// The filters may have changed since the page was loaded.
form?.addEventListener("submit", () => (form.elements.back.value = location.search.slice(1)));
document.querySelector("[data-takes-query]")?.addEventListener("submit", (event) => {
  event.target.elements.query.value = location.search.slice(1);
});
document.addEventListener("portal:morphed", show);
document.addEventListener("htmx:afterSettle", show);
addEventListener("pageshow", show);
show();
