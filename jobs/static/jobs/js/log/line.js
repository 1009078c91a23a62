// One line of the log as a list item. Plain text in the page: searching and copying just work.
import { appendText } from "./ansi.js";

const RANK_COLOURS = 6;
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false,
});

function span(className, text) {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = text;
  return element;
}

// The address of a line; attempts after the first carry their number.
export function anchorOf(line) {
  return line.attempt > 1 ? `L${line.attempt}-${line.line}` : `L${line.line}`;
}

export function lineElement(line, { rankColumn }) {
  const item = document.createElement("li");
  item.id = anchorOf(line);
  item.className = line.stream;
  item.dataset.place = `${line.attempt}:${line.line}`;
  const number = document.createElement("a");
  number.className = "n";
  number.href = `#${item.id}`;
  number.textContent = line.line;
  number.tabIndex = -1;
  item.append(number, span("at", clock.format(new Date(line.at))));
  if (rankColumn) item.append(span(`r rank-${line.rank % RANK_COLOURS}`, line.rank));
  const text = span("t", "");
  appendText(text, line.text);
  item.append(text);
  return item;
}
