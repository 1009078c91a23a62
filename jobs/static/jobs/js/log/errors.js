// What looks like an error. The words are those of jobs/logs/levels.py.
const WORDS = String.raw`\b(?:[a-z]*error|[a-z]*exception|fatal|critical|panic)\b|traceback \(most recent|::error|\b[EF]\d{3,8} \d\d:\d\d:`;
const PATTERN = new RegExp(WORDS, "i");
const known = new WeakMap();

export function looksLikeError(element) {
  if (!known.has(element)) known.set(element, PATTERN.test(element.querySelector(".t").textContent));
  return known.get(element);
}

// The first line of the whole log that looks like one, or null.
export async function firstError(source) {
  let after = "";
  do {
    const page = await source.search({ level: "error", after, limit: 1 });
    if (page.results.length) return page.results[0];
    after = page.next;
  } while (after);
  return null;
}
