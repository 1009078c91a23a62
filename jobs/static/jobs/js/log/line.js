// One line of the log as a list item. Plain text in the page: searching and copying just work.
import { appendText } from "./ansi.js";
import { exactTime, titleOf } from "../clock.js";
import { anchorOf, placeOf } from "./places.js";

const RANK_COLORS = 6;
const GROUP = "::group::";

function span(className, text) {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = text;
  return element;
}

// What a program says about folding: the begin of a group, with its title, or its end.
function addText(item, text, raw) {
  if (raw.startsWith("::endgroup::")) item.dataset.fold = "end";
  if (!raw.startsWith(GROUP)) return appendText(text, raw);
  item.dataset.fold = "start";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "fold";
  appendText(button, raw.slice(GROUP.length) || "group");
  text.skipped = GROUP.length;
  text.sources = button.sources?.map((place) => (place < 0 ? place : place + GROUP.length));
  text.append(button);
}

export function lineElement(line, { rankColumn }) {
  const item = document.createElement("li");
  item.id = anchorOf(line);
  item.className = line.stream;
  item.dataset.place = placeOf(line);
  item.dataset.at = Date.parse(line.at);
  item.dataset.source = `${line.attempt} ${line.rank} ${line.stream}`;
  const number = document.createElement("a");
  number.className = "n";
  number.href = `#${item.id}`;
  number.textContent = line.line;
  number.tabIndex = -1;
  item.append(number, span("at", exactTime(Date.parse(line.at))));
  if (rankColumn) item.append(span(`r rank-${line.rank % RANK_COLORS}`, line.rank));
  const text = span("t", "");
  addText(item, text, line.text);
  item.append(text);
  return item;
}

// Thousands of lines have a time: the title is made for the one that is pointed at.
document.addEventListener("pointerover", ({ target }) => {
  const line = target.closest?.(".log-lines .at:not([title])")?.parentElement;
  if (line) line.querySelector(".at").title = titleOf(Number(line.dataset.at));
});
