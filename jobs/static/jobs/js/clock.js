// Formats times in the person's zone and hours: the same formats as clocks.py, the one place here.
const { zone: chosenZone, hours: chosenHours, root } = document.documentElement.dataset;
const own = new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions();
const ownHours = own.hour12 ? "12" : "24";
const hasHalfDays = (chosenHours || ownHours) === "12";
const NEAR_MS = 12 * 3600 * 1000;
export const zone = known(chosenZone) ? chosenZone : own.timeZone;

// A browser may lack a zone that the server has.
function known(name) {
  try {
    return Boolean(name && new Intl.DateTimeFormat("en-US", { timeZone: name }));
  } catch {
    return false;
  }
}

function formatter(timeZone, more) {
  return new Intl.DateTimeFormat("en-US", {
    timeZone, weekday: "short", year: "numeric", month: "short", day: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23",
    ...more,
  });
}

const local = formatter(zone);
const withOffset = formatter(zone, { timeZoneName: "shortOffset" });
// Clocks are set back by an hour, or by half of one.
const SET_BACK_MS = [-60, -30, 30, 60].map((minutes) => minutes * 60_000);
const QUARTER_MS = 900_000;
const offsets = new Map(); // by quarter of an hour: the same times are formatted every second

// " UTC+2" for a time that comes twice, as clocks are set back; "" for any other.
function offsetIfTwice(moment) {
  const quarter = Math.floor(moment / QUARTER_MS);
  if (!offsets.has(quarter)) offsets.set(quarter, offsetOf(quarter * QUARTER_MS));
  return offsets.get(quarter);
}

function offsetOf(moment) {
  const isTwice = SET_BACK_MS.some((ms) => local.format(moment + ms) === local.format(moment));
  if (!isTwice) return "";
  const name = withOffset.formatToParts(moment).find((one) => one.type === "timeZoneName").value;
  return ` ${name.replace("GMT", "UTC")}`;
}

const parts = (moment) => Object.fromEntries(local.formatToParts(moment).map((one) => [one.type, one.value]));

function time({ hour, minute, second, fractionalSecond }, { seconds = false, exact = false } = {}) {
  const rest = exact ? `${minute}:${second}.${fractionalSecond}` : seconds ? `${minute}:${second}` : minute;
  if (!hasHalfDays) return `${hour}:${rest}`;
  const number = String(hour % 12 || 12);
  // Lines of a log are columns.
  return `${exact ? number.padStart(2, "0") : number}:${rest} ${hour >= 12 ? "PM" : "AM"}`;
}

function day(one, year = one.year !== parts(Date.now()).year) {
  return year ? `${one.month} ${one.day}, ${one.year}` : `${one.month} ${one.day}`;
}

export const exactTime = (moment) => time(parts(moment), { exact: true });

export const dayOf = (moment) => day(parts(moment), true);

export function when(moment) {
  const one = parts(moment);
  const near = Math.abs(Date.now() - moment) < NEAR_MS;
  const shown = time(one, { seconds: true }) + offsetIfTwice(moment);
  return near ? shown : `${day(one)}, ${shown}`;
}

export function slot(moment) {
  const one = parts(moment);
  return `${one.weekday}, ${day(one)}, ${time(one)}${offsetIfTwice(moment)}`;
}

export function titleOf(moment) {
  const utc = `${new Date(moment).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  if (zone === "UTC") return utc;
  const one = parts(moment);
  return `${day(one, true)}, ${time(one, { seconds: true })}${offsetIfTwice(moment)} ${zone} · ${utc}`;
}

// With it the server renders the next page as this browser would.
const cookie = `clock=${own.timeZone}:${ownHours}`;
if (!document.cookie.split("; ").includes(cookie))
  document.cookie = `${cookie}; path=${root || "/"}; max-age=31536000; samesite=lax`;
