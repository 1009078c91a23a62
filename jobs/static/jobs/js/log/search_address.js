// What is looked for stands in the page's address, so that a link leads to the same matches.
const NAMES = ["find", "regex", "case"];

// {q, regex, case}, or null when the address asks for nothing.
export function searchOfAddress() {
  const asked = new URLSearchParams(location.search);
  if (!asked.get("find")) return null;
  return { q: asked.get("find"), regex: asked.get("regex"), case: asked.get("case") };
}

export function keepInAddress({ q, ...options }) {
  const address = new URL(location.href);
  for (const name of NAMES) address.searchParams.delete(name);
  const kept = q ? { find: q, ...options } : {};
  for (const [name, value] of Object.entries(kept)) address.searchParams.set(name, value);
  if (address.href !== location.href) history.replaceState(null, "", address);
}
