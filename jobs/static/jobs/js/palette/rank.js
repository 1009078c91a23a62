// How well a text fits what was typed: each word begins a word of it, is a part of it, or its
// letters occur in this order. 0: it does not fit.
const FIRST = 4, BEGIN = 3, PART = 2, LETTERS = 1;

function fitOf(word, text) {
  const at = text.indexOf(word);
  if (at === 0) return FIRST;
  if (at > 0 && /[\s_./-]/.test(text[at - 1])) return BEGIN;
  if (at > 0) return PART;
  let from = 0;
  for (const letter of word) {
    from = text.indexOf(letter, from) + 1;
    if (!from) return 0;
  }
  return LETTERS;
}

export function rank(query, text) {
  const [words, lower] = [query.toLowerCase().split(/\s+/).filter(Boolean), text.toLowerCase()];
  const fits = words.map((word) => fitOf(word, lower));
  return fits.every(Boolean) ? fits.reduce((sum, fit) => sum + fit, 0) : 0;
}
