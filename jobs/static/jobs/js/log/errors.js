// What looks like an error: in words that RE2, on the server, and the browser read alike.
const WORDS = String.raw`\b(?:[a-z]*error|[a-z]*exception|fatal|panic)\b|traceback \(most recent|::error`;
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
    const page = await source.search({ q: WORDS, regex: "true", after, limit: 1 });
    if (page.results.length) return page.results[0];
    after = page.next;
  } while (after);
  return null;
}
