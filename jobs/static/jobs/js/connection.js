// Shows on every page that the portal cannot be reached, and that it can again. Each connection
// reports its state; one that recovers within MOMENT_MS is not shown.
const MOMENT_MS = 1500;
const REFUSED =
  "You can't see this page any more: you were signed out, your role changed, or it was deleted. Copy what you typed, then reload the page.";
const lost = new Set();
let timer = 0;
let isRefused = false;

function show() {
  const sign = document.getElementById("connection");
  if (!sign || isRefused) return;
  let words = "";
  if (!navigator.onLine) words = "You are offline. This page may be out of date; it updates when you are online again.";
  else if (lost.size) words = "Connection to the portal lost. This page may be out of date; reconnecting.";
  if (sign.textContent !== words) sign.textContent = words;
}

export function report(who, isLost) {
  if (isLost) lost.add(who);
  else lost.delete(who);
  clearTimeout(timer);
  timer = setTimeout(show, lost.size ? MOMENT_MS : 0);
}

function hasTypedText() {
  const fields = [...document.querySelectorAll("textarea, input:not([type]), input[type=text]")];
  return fields.some((each) => each.value !== each.defaultValue && each.checkVisibility());
}

// What the page shows may no longer be seen. A reload shows that best, unless it would lose text.
export function leaveRefused() {
  if (hasTypedText()) tellRefused();
  else location.reload();
}

function tellRefused() {
  const sign = document.getElementById("connection");
  if (!sign) return;
  isRefused = true;
  sign.textContent = REFUSED;
  // A dialog hides the rest of the page from its user.
  const copy = Object.assign(document.createElement("p"), { className: "note error", textContent: REFUSED });
  copy.setAttribute("role", "alert");
  document.querySelector("dialog[open]")?.prepend(copy);
}

addEventListener("offline", show);
addEventListener("online", show);
