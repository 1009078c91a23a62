// Turns a line with terminal colours into DOM nodes. Text is always set as text, never as HTML;
// every other escape sequence (cursor moves, titles, links) is dropped.
const SEQUENCE = /\x1b(?:\[([0-9;:?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/g;
const SHOWN = /^(?:[1-4]|3[0-7]|9[0-7])$/;

function colours(state, parameters) {
  const codes = parameters.split(/[;:]/);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] || "0";
    if (code === "0") state.clear();
    // 256 colours and RGB: the numbers that belong to them are skipped, not read as styles.
    else if (code === "38" || code === "48") i += codes[i + 1] === "5" ? 2 : 4;
    else if (code === "22") ["1", "2"].forEach((one) => state.delete(one));
    else if (code === "39") [...state].filter((one) => one > 4).forEach((one) => state.delete(one));
    else if (code === "23" || code === "24") state.delete(String(code - 20));
    else if (SHOWN.test(code)) {
      if (code > 4) [...state].filter((one) => one > 4).forEach((one) => state.delete(one));
      state.add(code);
    }
  }
}

function piece(text, state) {
  if (!state.size) return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = [...state].map((code) => `a${code}`).join(" ");
  span.textContent = text;
  return span;
}

// What a progress bar drew last is what a terminal would show.
function afterReturns(text) {
  const parts = text.replace(/\r+$/, "").split("\r");
  return parts[parts.length - 1];
}

export function appendText(parent, raw) {
  const text = afterReturns(raw);
  if (!text.includes("\x1b")) {
    parent.textContent = text;
    return;
  }
  const state = new Set();
  let from = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    if (match.index > from) parent.append(piece(text.slice(from, match.index), state));
    if (match[2] === "m") colours(state, match[1]);
    from = match.index + match[0].length;
  }
  if (from < text.length) parent.append(piece(text.slice(from), state));
}
