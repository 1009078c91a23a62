// What a page says about how current it is.
export function say(state, words) {
  const sign = document.getElementById("live-state");
  if (!sign || sign.textContent === words) return;
  // A screen reader reads that the page is behind, not each second of it.
  sign.setAttribute("aria-live", sign.dataset.state === state ? "off" : "polite");
  sign.dataset.state = state;
  sign.textContent = words;
}
