// A plain textarea with line numbers beside it. Tab leaves it as anywhere else; Enter keeps the
// indentation, Ctrl ] and Ctrl [ change it, Ctrl Enter submits. Every change can be undone.
function insert(area, text) {
  // The one way that keeps the browser's undo; if it is unavailable, the text is set instead.
  if (!document.execCommand("insertText", false, text))
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
}

function selectLines(area) {
  const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
  const end = area.value.indexOf("\n", area.selectionEnd);
  area.setSelectionRange(start, end < 0 ? area.value.length : end);
  return area.value.slice(area.selectionStart, area.selectionEnd);
}

function indent(area, deeper) {
  const lines = selectLines(area).split("\n");
  const changed = lines.map((line) => (deeper ? line && `  ${line}` : line.replace(/^ {1,2}/, "")));
  const start = area.selectionStart;
  insert(area, changed.join("\n"));
  area.setSelectionRange(start, start + changed.join("\n").length);
}

// What a new line begins with, after the text `line`.
export function indentationAfter(line) {
  const deeper = /(:|\||>)\s*$/.test(line) && !line.trimStart().startsWith("#");
  return line.match(/^ */)[0] + (deeper ? "  " : "");
}

// The part in which two texts differ, between their common beginning and end.
export function differenceOf(old, text) {
  let start = 0;
  while (start < old.length && old[start] === text[start]) start++;
  let end = 0;
  const most = Math.min(old.length, text.length) - start;
  while (end < most && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
  return { from: start, to: old.length - end, insert: text.slice(start, text.length - end) };
}

function newLine(area) {
  const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
  insert(area, "\n" + indentationAfter(area.value.slice(start, area.selectionStart)));
}

function keys(area) {
  area.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const control = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && control) area.form.requestSubmit();
    else if (event.key === "Enter" && !event.shiftKey) newLine(area);
    else if (control && event.key === "]") indent(area, true);
    else if (control && event.key === "[") indent(area, false);
    else return;
    event.preventDefault();
  });
}

export function bindArea(area, gutter) {
  let bad = new Set();

  function number() {
    const count = area.value.split("\n").length;
    while (gutter.childElementCount > count) gutter.lastElementChild.remove();
    while (gutter.childElementCount < count) {
      const item = document.createElement("li");
      item.textContent = gutter.childElementCount + 1;
      gutter.append(item);
    }
    [...gutter.children].forEach((item, i) => item.classList.toggle("bad", bad.has(i + 1)));
    gutter.scrollTop = area.scrollTop;
  }

  keys(area);
  area.addEventListener("input", number);
  area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop), { passive: true });
  number();

  return {
    mark(errors) {
      bad = new Set(errors.map((error) => error.line));
      number();
    },
    replace(text) {
      area.focus();
      area.select();
      insert(area, text);
      area.setSelectionRange(0, 0);
      area.scrollTop = 0;
    },
    // Only what differs, so that the place, the scrolling and the focus stay.
    change(text) {
      if (text === area.value) return;
      const { from, to, insert: piece } = differenceOf(area.value, text);
      const focused = document.activeElement;
      area.focus({ preventScroll: true });
      area.setSelectionRange(from, to);
      insert(area, piece);
      focused?.focus({ preventScroll: true });
    },
    showLine(line) {
      const lines = area.value.split("\n");
      const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
      area.focus();
      area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
      area.scrollTop = Math.max(0, (area.scrollHeight / lines.length) * (line - 4));
    },
  };
}
