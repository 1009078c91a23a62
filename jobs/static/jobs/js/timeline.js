// Lets the timeline go on between two answers: the present stays in its place, and all that has a
// time of its own moves to the left.
import { refreshSoon } from "./live.js";

const STEP_MS = 2000;
// After so much of the picture has moved out, in per cent, it is fetched again.
const MOST = 2;

// The picture as it came, and when.
let cameAt = performance.now();
const drawn = new WeakMap();

function valuesOf(element) {
  if (!drawn.has(element)) {
    const value = (name) => parseFloat(element.getAttribute(name));
    drawn.set(element, { x: value("x"), width: value("width") });
  }
  return drawn.get(element);
}

function set(element, name, value) {
  element.setAttribute(name, `${Math.max(0, value).toFixed(3)}%`);
}

function move(picture, percent) {
  picture.querySelector(".bars").setAttribute("x", `${-percent}%`);
  for (const part of picture.querySelectorAll("[data-moves]")) {
    const { x, width } = valuesOf(part);
    const { moves } = part.dataset;
    if (moves !== "end") set(part, "x", x + percent);
    if (moves === "end") set(part, "width", width + percent);
    if (moves === "begin") set(part, "width", width - percent);
  }
}

function goOn() {
  const elapsed_s = (performance.now() - cameAt) / 1000;
  for (const picture of document.querySelectorAll("svg.timeline[data-span]")) {
    const percent = (100 * elapsed_s) / Number(picture.dataset.span);
    move(picture, percent);
    if (percent > MOST) refreshSoon();
  }
}

// The answer's positions are those of its own present.
document.addEventListener("parts-shown", () => {
  cameAt = performance.now();
  for (const part of document.querySelectorAll("svg.timeline [data-moves]")) drawn.delete(part);
});
setInterval(goOn, STEP_MS);
