// The search is part of the page's address, so that a link leads to the same matches.
const NAMES = ["find", "regex", "case", "level"];

// {q, regex, case, level}, or null if the address has no search.
export function searchOfAddress() {
  const asked = new URLSearchParams(location.search);
  if (!asked.get("find") && !asked.get("level")) return null;
  const [q, regex, withCase, level] = NAMES.map((name) => asked.get(name) ?? "");
  return { q, regex, case: withCase, level };
}

export function keepInAddress({ q: find, level, ...options }) {
  const address = new URL(location.href);
  for (const name of NAMES) address.searchParams.delete(name);
  const kept = { find, level, ...(find ? options : {}) };
  for (const [name, value] of Object.entries(kept)) if (value) address.searchParams.set(name, value);
  if (address.href !== location.href) history.replaceState(null, "", address);
}
