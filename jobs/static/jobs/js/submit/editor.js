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

function newLine(area) {
  const line = area.value.slice(area.value.lastIndexOf("\n", area.selectionStart - 1) + 1, area.selectionStart);
  const deeper = /(:|\||>)\s*$/.test(line) && !line.trimStart().startsWith("#");
  insert(area, "\n" + line.match(/^ */)[0] + (deeper ? "  " : ""));
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

export function bindEditor(area, gutter) {
  // What the server has marked stays until the text is checked again.
  let bad = new Set([...gutter.querySelectorAll(".bad")].map((item) => Number(item.textContent)));

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
    area,
    markBad(lines) {
      bad = new Set(lines);
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
      const old = area.value;
      if (text === old) return;
      let start = 0;
      while (start < old.length && old[start] === text[start]) start++;
      let end = 0;
      const most = Math.min(old.length, text.length) - start;
      while (end < most && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
      const focused = document.activeElement;
      area.focus({ preventScroll: true });
      area.setSelectionRange(start, old.length - end);
      insert(area, text.slice(start, text.length - end));
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
