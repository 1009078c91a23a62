// What this browser notifies its user about: {own, watched: {id: {name, href}}, known: {id: phase}}.
// `known` has how the jobs were when they were looked at last.
export const account = document.querySelector("[data-signed-in] summary")?.textContent.trim();
export const NAME = `notices ${account}`;

// As MOST_WATCHED in job_notices.py.
export const MOST_WATCHED = 50;

export function readChoice() {
  try {
    return { own: false, watched: {}, known: {}, ...JSON.parse(localStorage.getItem(NAME) ?? "{}") };
  } catch {
    return { own: false, watched: {}, known: {} };
  }
}

export function writeChoice(choice) {
  try {
    localStorage.setItem(NAME, JSON.stringify(choice));
  } catch {
    // A browser that keeps nothing notifies of nothing.
  }
}

export function isWanted({ own, watched }) {
  return own || Object.keys(watched).length > 0;
}
