// Turns a line with terminal colors into DOM nodes. Text is always set as text, never as HTML;
// every other escape sequence (titles, links, most cursor moves) is dropped. A line that goes back
// to its begin, as progress bars do, is drawn as a terminal would show it in the end.
// The same as in jobs/escapes.py.
const SEQUENCE =
  /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[@-Z\\^_])/g;
const SHOWN = /^(?:[1-4]|3[0-7]|9[0-7])$/;

function colors(state, parameters) {
  const codes = parameters.split(/[;:]/);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] || "0";
    if (code === "0") state.clear();
    // 256 colors and RGB: the numbers that belong to them are skipped, not read as styles.
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

function piece(text, style) {
  if (!style) return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = style;
  span.textContent = text;
  return span;
}

// Calls on.text(part, style) and on.erase(how) in the order in which a terminal would.
function play(raw, on) {
  const state = new Set();
  const style = () => [...state].map((code) => `a${code}`).join(" ");
  let from = 0;
  for (const match of raw.matchAll(SEQUENCE)) {
    if (match.index > from) on.text(raw.slice(from, match.index), style());
    if (match[2] === "m") colors(state, match[1]);
    if (match[2] === "K") on.erase(match[1] || "0");
    from = match.index + match[0].length;
  }
  if (from < raw.length) on.text(raw.slice(from), style());
}

// The cells of one row: overwritten cells are replaced, others stay.
class Row {
  cells = [];
  column = 0;
  read = 0; // characters of the text without escape sequences

  text(part, style) {
    for (const sign of part) {
      if (sign === "\r") this.column = 0;
      else if (sign === "\b") this.column = Math.max(0, this.column - 1);
      else this.cells[this.column++] = { sign, style, source: this.read };
      this.read++;
    }
  }

  erase(how) {
    if (how === "0") this.cells.length = Math.min(this.cells.length, this.column);
    else if (how === "2") this.cells = [];
  }
}

function appendRow(parent, raw) {
  const row = new Row();
  play(raw, row);
  const cells = Array.from(row.cells, (cell) => cell ?? { sign: " ", style: "", source: -1 });
  // Where each character shown stood in the text: marks of a search need it.
  parent.sources = cells.map((cell) => cell.source);
  for (let i = 0, from = 0; i < cells.length; i++) {
    if (i + 1 < cells.length && cells[i + 1].style === cells[from].style) continue;
    const text = cells.slice(from, i + 1).map((cell) => cell.sign).join("");
    parent.append(piece(text, cells[from].style));
    from = i + 1;
  }
}

export function appendText(parent, raw) {
  if (/[\r\b]/.test(raw)) appendRow(parent, raw);
  else if (!raw.includes("\x1b")) parent.textContent = raw;
  else play(raw, { text: (part, style) => parent.append(piece(part, style)), erase() {} });
}
