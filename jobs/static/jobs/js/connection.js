// Shows on every page that the portal cannot be reached, and that it can again. Each connection
// reports its state; one that recovers within MOMENT_MS is not shown.
const MOMENT_MS = 1500;
const lost = new Set();
let timer = 0;

function show() {
  const sign = document.getElementById("connection");
  if (!sign) return;
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

addEventListener("offline", show);
addEventListener("online", show);
