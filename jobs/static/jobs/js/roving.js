// Pictures with many links: Tab reaches one of them, the arrow keys the nearest one in their
// direction. A picture names itself with [data-roving].
const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

function linksOf(picture) {
  return [...picture.querySelectorAll("a, button")];
}

function makeCurrent(picture, chosen) {
  for (const link of picture.querySelectorAll('[tabindex="0"]')) link.setAttribute("tabindex", -1);
  chosen.setAttribute("tabindex", 0);
}

function middle(link) {
  const box = link.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

// The distance to the side counts three times: the next one in a row is nearer than one below.
function nearest(links, from, [dx, dy]) {
  const [x, y] = middle(from);
  let best = null;
  let least = Infinity;
  for (const link of links) {
    const [toX, toY] = middle(link);
    const ahead = (toX - x) * dx + (toY - y) * dy;
    const aside = Math.abs((toX - x) * dy) + Math.abs((toY - y) * dx);
    if (link !== from && ahead > 1 && ahead + 3 * aside < least) {
      least = ahead + 3 * aside;
      best = link;
    }
  }
  return best;
}

const centered = new WeakSet();

// Shows the current part of a wide picture when the picture is first seen.
function center(picture, link) {
  const scroller = picture.closest(".scroll-x");
  if (!scroller?.clientWidth || centered.has(picture)) return;
  centered.add(picture);
  const [box, frame] = [link.getBoundingClientRect(), scroller.getBoundingClientRect()];
  scroller.scrollLeft += box.x + box.width / 2 - frame.x - frame.width / 2;
}

// A picture that was drawn again has links that Tab would reach one by one.
function prepare() {
  for (const picture of document.querySelectorAll("[data-roving]")) {
    const links = linksOf(picture);
    const current =
      links.find((link) => link === document.activeElement) ??
      links.find((link) => link.getAttribute("tabindex") === "0") ??
      links.find((link) => link.hasAttribute("aria-current")) ??
      links[0];
    for (const link of links) {
      const wanted = link === current ? "0" : "-1";
      if (link.getAttribute("tabindex") !== wanted) link.setAttribute("tabindex", wanted);
    }
    if (current) center(picture, picture.querySelector("a[aria-current]") ?? current);
  }
}

document.addEventListener("keydown", (event) => {
  const picture = event.target.closest?.("[data-roving]");
  const step = STEPS[event.key];
  if (!picture || !step || event.ctrlKey || event.metaKey || event.altKey) return;
  const from = event.target.closest("a, button");
  const next = from && nearest(linksOf(picture), from, step);
  event.preventDefault();
  if (!next) return;
  makeCurrent(picture, next);
  next.focus();
});

document.addEventListener("portal:morphed", prepare);
prepare();
