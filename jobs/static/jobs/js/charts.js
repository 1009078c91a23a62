// The charts of the job page: dragging over one zooms all of them, a click marks a moment.
const LEFT = 54, RIGHT = 334, WIDTH = 340; // of the picture: see charts.py
const LEAST_PX = 6;
const MS = 1000;
const panel = document.getElementById("panel-charts");
let drag = null;

function valueAt(svg, clientX) {
  const box = svg.getBoundingClientRect();
  const x = ((clientX - box.left) / box.width) * WIDTH;
  const part = Math.min(1, Math.max(0, (x - LEFT) / (RIGHT - LEFT)));
  const [low, high] = [Number(svg.dataset.low), Number(svg.dataset.high)];
  return low + part * (high - low);
}

function show(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) query.set(name, value);
  history.replaceState(null, "", `?${query}`);
  panel.dispatchEvent(new Event("address-changed"));
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

panel.addEventListener("pointerdown", (event) => {
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
  const byStep = new URLSearchParams(location.search).get("by") === "step";
  const unit = byStep ? 1 : MS;
  const ends = [from, to].map((x) => valueAt(svg, x) * unit).sort((a, b) => a - b);
  if (Math.abs(to - from) >= LEAST_PX)
    show({ from: Math.floor(ends[0]), to: Math.ceil(ends[1]) });
  else if (!byStep) show({ at: Math.round(ends[0]) });
});
