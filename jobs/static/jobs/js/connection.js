// Shows on every page that the portal cannot be reached, and that it can again. Each connection
// reports its state; one that recovers within MOMENT_MS is not shown.
const MOMENT_MS = 1500;
const lost = new Set();
let timer = 0;

function show() {
  const sign = document.getElementById("connection");
  if (!sign) return;
  let words = "";
  if (!navigator.onLine) words = "You are offline. What you see may be old; it goes on by itself when you are back.";
  else if (lost.size) words = "Connection to the portal lost. What you see may be old; trying again.";
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
