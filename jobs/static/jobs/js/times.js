// Keeps "5 min ago" and running durations fresh, and puts local time into titles.
const DAY = 86400, HOUR = 3600, MINUTE = 60;
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const time = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

// The same words as the server's: see words_ago and words_for in template_tags.py.
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

function clock(moment) {
  const recent = Date.now() - moment < 12 * HOUR * 1000;
  return recent ? time.format(moment) : `${day.format(moment)}, ${time.format(moment)}`;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function refresh() {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    const seconds = (Date.now() - moment) / 1000;
    if ("ago" in element.dataset) setText(element, wordsAgo(seconds));
    else if ("since" in element.dataset) setText(element, wordsFor(seconds));
    else if ("span" in element.dataset) setText(element, wordsSpan(seconds));
    else if ("in" in element.dataset)
      setText(element, seconds > -1 ? "any moment" : `in ${wordsSpan(-seconds)}`);
    else if ("clock" in element.dataset) setText(element, clock(moment));
    const title = full.format(moment);
    if (element.title !== title) element.title = title;
  }
}

refresh();
setInterval(refresh, 1000);
document.addEventListener("portal:morphed", refresh);
