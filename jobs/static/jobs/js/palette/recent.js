// The entries that this browser's user chose last, newest first.
const KEPT = 6;
const account = document.querySelector("[data-signed-in] summary")?.textContent.trim();
const NAME = `palette ${account}`;

export function recentEntries() {
  try {
    const kept = JSON.parse(localStorage.getItem(NAME) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

export function remember({ group, label, href, isJob }) {
  const others = recentEntries().filter((each) => each.label !== label || each.href !== href);
  const kept = [{ group, label, href, isJob }, ...others].slice(0, KEPT);
  try {
    localStorage.setItem(NAME, JSON.stringify(kept));
  } catch {
    // A browser that keeps nothing has no recent entries.
  }
}
