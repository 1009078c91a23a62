// Keeps "5 min ago" and running durations fresh, and every time in the person's zone and hours.
import { dayOf, slot, titleOf, when } from "./clock.js";

const DAY = 86400, HOUR = 3600, MINUTE = 60;

// The same words as the server's: see words_ago in clocks.py and words_for in template_tags.py.
export function wordsAgo(seconds) {
  if (seconds < 10) return "just now";
  for (const [size, word] of [[DAY, "day"], [HOUR, "h"], [MINUTE, "min"], [1, "s"]]) {
    const count = Math.floor(seconds / size);
    if (count) return `${count} ${word}${word === "day" && count > 1 ? "s" : ""} ago`;
  }
  return "just now";
}

export function wordsFor(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (number) => String(number).padStart(2, "0");
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} m ${two(whole % MINUTE)} s`;
  if (whole < DAY) return `${Math.floor(whole / HOUR)} h ${two(Math.floor((whole % HOUR) / MINUTE))} m`;
  return `${Math.floor(whole / DAY)} d ${Math.floor((whole % DAY) / HOUR)} h`;
}

// As figures.span in Python.
export function wordsSpan(seconds) {
  for (const [below, unit, word] of [[120, 1, "s"], [7200, MINUTE, "min"], [172800, HOUR, "h"]])
    if (seconds < below) return `${Math.round(Math.max(0, seconds) / unit)} ${word}`;
  return `${Math.round(seconds / DAY)} d`;
}

const wordsUntil = (seconds) => (seconds < 1 ? "any moment" : `in ${wordsSpan(seconds)}`);
const relative = (seconds) => (seconds >= 0 ? wordsAgo(seconds) : wordsUntil(-seconds));

// By the attribute of a <time>: its text. See time_tags.py.
const counted = {
  ago: wordsAgo, since: wordsFor, span: wordsSpan, in: (seconds) => wordsUntil(-seconds),
};
const absolute = { clock: when, day: dayOf, slot };

function show(element) {
  const moment = Date.parse(element.dateTime);
  const seconds = (Date.now() - moment) / 1000;
  const form = Object.keys(element.dataset).find((name) => name in counted || name in absolute);
  const isCounted = form in counted;
  if (form) setText(element, isCounted ? counted[form](seconds) : absolute[form](moment));
  const title = isCounted ? titleOf(moment) : `${titleOf(moment)} · ${relative(seconds)}`;
  if (element.title !== title) element.title = title;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function refresh() {
  document.querySelectorAll("time[datetime]").forEach(show);
}

refresh();
setInterval(refresh, 1000);
document.addEventListener("portal:morphed", refresh);
