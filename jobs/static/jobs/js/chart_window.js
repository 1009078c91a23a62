// The window that all charts of a page show, which its address has: dragging over a chart zooms
// all of them, a click or an arrow key marks a position. panels.js fetches the charts again.
const LEFT = 54, RIGHT = 334, WIDTH = 340; // of the picture: see charts.py
const LEAST_PX = 6;
// Of the window: so far an arrow key moves the mark.
const STEP = 1 / 50;
let drag = null;

const axisOf = ({ dataset }) => ({ low: +dataset.low, high: +dataset.high, unit: +dataset.unit });

function valueAt(svg, clientX) {
  const box = svg.getBoundingClientRect();
  const x = ((clientX - box.left) / box.width) * WIDTH;
  const part = Math.min(1, Math.max(0, (x - LEFT) / (RIGHT - LEFT)));
  const { low, high, unit } = axisOf(svg);
  return (low + part * (high - low)) * unit;
}

// Shows a changed view; null leaves a part out of the address.
function show(element, changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes))
    if (value === null) query.delete(name);
    else query.set(name, value);
  history.replaceState(null, "", `?${query}`);
  element.closest("[data-source]").dispatchEvent(new Event("address-changed"));
}

function draw(event) {
  const box = drag.svg.getBoundingClientRect();
  const [from, to] = [drag.from, event.clientX].sort((a, b) => a - b);
  const style = { left: from, top: box.top, width: to - from, height: box.height };
  for (const [name, px] of Object.entries(style)) drag.area.style[name] = `${px}px`;
}

function finish() {
  drag?.area.remove();
  drag = null;
}

addEventListener("pointerdown", (event) => {
  const svg = event.target.closest("svg[data-brush]");
  if (!svg || event.button) return;
  const area = document.createElement("div");
  area.className = "brush";
  document.body.append(area);
  drag = { svg, area, from: event.clientX };
});

addEventListener("pointermove", (event) => drag && draw(event));
addEventListener("pointercancel", finish);
addEventListener("pointerup", (event) => {
  if (!drag) return;
  const { svg, from } = drag;
  const to = event.clientX;
  finish();
  const ends = [from, to].map((x) => valueAt(svg, x)).sort((a, b) => a - b);
  if (Math.abs(to - from) >= LEAST_PX)
    show(svg, { from: Math.floor(ends[0]), to: Math.ceil(ends[1]) });
  else show(svg, { at: Math.round(ends[0]) });
});

addEventListener("dblclick", (event) => {
  const svg = event.target.closest("svg[data-brush]");
  if (svg) show(svg, { from: null, to: null, at: null });
});

function moveMark(charts, direction) {
  const svg = charts.querySelector("svg[data-brush]");
  if (!svg) return;
  const { low, high, unit } = axisOf(svg);
  const marked = new URLSearchParams(location.search).get("at");
  const step = Math.max(1, (high - low) * unit * STEP);
  const from = marked === null ? ((low + high) / 2) * unit : Number(marked) + direction * step;
  const at = Math.min(high * unit, Math.max(low * unit, from));
  show(svg, { at: Math.round(at) });
}

// One stop of Tab for all charts of a section: they share the window and the mark.
addEventListener("keydown", (event) => {
  const charts = event.target;
  if (!charts.matches?.("[data-chart-keys]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const links = charts.closest("[data-source]").querySelectorAll("a[data-key]");
  const link = [...links].find((each) => each.dataset.key === event.key);
  if (direction) moveMark(charts, direction);
  else if (event.key === "Escape") show(charts, { at: null });
  else if (link) link.click();
  else return;
  event.preventDefault();
});

addEventListener("input", ({ target }) => {
  if (!target.matches("input[data-smooth]")) return;
  target.nextElementSibling.textContent = `${target.value} %`;
  show(target, { smooth: target.value === "0" ? null : target.value });
});
