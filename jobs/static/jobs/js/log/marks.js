// Marks matches within a line that is drawn already. Only text nodes are split: what the line says
// stays text, and its colors stay.
function clear(text) {
  const marks = text.querySelectorAll("mark");
  for (const mark of marks) mark.replaceWith(...mark.childNodes);
  if (marks.length) text.normalize();
}

// Spans count characters (code points) of the whole text; the page counts halves of some of them.
function shownRanges(text, spans) {
  const signs = [...text.textContent];
  const sources = text.sources;
  const skipped = text.skipped ?? 0;
  const isMarked = (index) => {
    const source = sources ? sources[index] : index + skipped;
    return spans.some(([start, end]) => source >= start && source < end);
  };
  const ranges = [];
  let at = 0;
  let open = false;
  signs.forEach((sign, index) => {
    const marked = isMarked(index);
    if (marked && !open) ranges.push([at, at]);
    at += sign.length;
    if (marked) ranges.at(-1)[1] = at;
    open = marked;
  });
  return ranges;
}

function wrap(node, from, to) {
  const end = node.splitText(from);
  const rest = end.splitText(to - from);
  const mark = document.createElement("mark");
  end.replaceWith(mark);
  mark.append(end);
  return rest;
}

// Marks `spans` in the line's text, and nothing else.
function markLine(item, spans) {
  const text = item.querySelector(".t");
  clear(text);
  if (!spans?.length) return;
  const ranges = shownRanges(text, spans);
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  let at = 0;
  for (let node of nodes) {
    const end = at + node.length;
    let from = at;
    for (const [start, stop] of ranges) {
      const [first, last] = [Math.max(start, from), Math.min(stop, end)];
      if (first >= last) continue;
      node = wrap(node, first - from, last - from);
      from = last;
    }
    at = end;
  }
}

// Which lines of a list match, and which of them the reader is at.
export class Marks {
  constructor(list) {
    this.list = list;
  }

  add(element, spans) {
    element.classList.add("hit");
    markLine(element, spans);
  }

  clear() {
    for (const element of this.list.querySelectorAll(".hit")) {
      element.classList.remove("hit", "current");
      markLine(element, []);
    }
  }

  move(element) {
    this.list.querySelector(".current")?.classList.remove("current");
    element?.classList.add("current");
  }
}
