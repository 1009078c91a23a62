// Where in a specification a position of its text is: the keys around it, read from indentation and
// from flow brackets, so that it works while the text is not yet valid YAML.
const MARK = /^---(\s|$)/;
const KEY = /^([^\s:#'"[\]{},&*!|>%@`-][^:#]*?)\s*:(?=\s|$)/;
const SCRIPT = /:\s*[|>][-+0-9]*\s*(#.*)?$/;

// The levels of a line: the column of each dash, then that of its key or scalar.
function levelsOf(text) {
  const levels = [];
  let column = text.match(/^ */)[0].length;
  for (let dash; (dash = /^-(?:\s+|$)/.exec(text.slice(column))); column += dash[0].length)
    levels.push({ column, dash: true });
  const key = KEY.exec(text.slice(column));
  return { levels, column, key: key?.[1], rest: key ? column + key[0].length : column };
}

const isBlank = (text) => /^\s*(#|$)/.test(text);

// The keys and list items around `column` of a line, from outside; null: in a script's lines.
function pathAbove(doc, number, own) {
  const path = [];
  let { column } = own;
  const climb = ({ levels, key, column: at, key: name }, isOwn) => {
    const found = [...levels];
    if (key && !isOwn) found.push({ column: at, name });
    for (const level of found.reverse()) {
      const isParent = level.column < column || (level.name && path[0] === 0 && level.column === column);
      if (!isParent) continue;
      path.unshift(level.dash ? 0 : level.name);
      column = level.column;
    }
  };
  climb(own, true);
  for (let above = number - 1; above > 0 && (column > 0 || path[0] === 0); above--) {
    const { text } = doc.line(above);
    if (MARK.test(text)) break;
    if (isBlank(text)) continue;
    const line = levelsOf(text);
    const before = path.length;
    climb(line, false);
    if (path.length > before && SCRIPT.test(text)) return null;
  }
  return path;
}

// The brackets of a flow value: what is open at its end, and the keys in it.
function flowOf(text, offset) {
  const open = [];
  const keys = [];
  let word = 0;
  const path = () => open.flatMap((each) => (each.list ? [0] : each.key ? [each.key] : []));
  for (let i = 0; i < text.length; i++) {
    const top = open.at(-1);
    const c = text[i];
    if (c === '"' || c === "'") i = (text.indexOf(c, i + 1) + text.length) % text.length || text.length;
    else if (c === "{" || c === "[") open.push({ list: c === "[" });
    else if (c === "}" || c === "]") open.pop();
    else if (c === "," && top) top.key = undefined;
    else if (c === ":" && top && !top.list && !top.key && /\s|$/.test(text[i + 1] ?? " ")) {
      top.key = text.slice(word, i).trim();
      const from = offset + word + text.slice(word, i).search(/\S|$/);
      keys.push({ from, to: from + top.key.length, path: path() });
    } else continue;
    word = i + 1;
  }
  return { isOpen: open.length > 0, expectsKey: open.length > 0 && !open.at(-1).list && !open.at(-1).key, path: path(), word, keys };
}

// How many lines of --- come before a line; one that opens the text is none.
function marksBefore(doc, number) {
  let count = 0;
  for (let each = 2; each <= number; each++) if (MARK.test(doc.line(each).text)) count++;
  return count;
}

// What can be written at a position: `path` of the value or of the mapping, `wants` a key, a value
// or a parameter, `from` the beginning of its word. Null: nothing that could be completed.
export function positionOf(doc, pos) {
  const line = doc.lineAt(pos);
  const before = line.text.slice(0, pos - line.from);
  const part = marksBefore(doc, line.number);
  const parameter = /\$\{\{\s*([\w.-]*)$/.exec(before);
  if (parameter) return { wants: "parameter", from: pos - parameter[1].length, part, path: [] };
  if (/(^|\s)#/.test(before)) return null;
  const own = levelsOf(before);
  const path = pathAbove(doc, line.number, own);
  if (!path) return null;
  const at = { part, above: path };
  if (own.key) path.push(own.key);
  const value = before.slice(own.rest).match(/^\s*/)[0].length + own.rest;
  const text = before.slice(value);
  const flow = flowOf(text, line.from + value);
  if (flow.isOpen) {
    const word = text.slice(flow.word).search(/\S|$/) + flow.word;
    const wants = flow.expectsKey ? "key" : "value";
    return { ...at, wants, path: [...path, ...flow.path], from: line.from + value + word, flow: true };
  }
  if (own.key) return { ...at, wants: "value", path, from: line.from + value };
  if (/\s$/.test(text)) return null;
  return { ...at, wants: "key", path, from: line.from + own.column, column: own.column };
}

// The key at a position, with its path. Null: there is none.
export function keyAt(doc, pos) {
  const line = doc.lineAt(pos);
  if (isBlank(line.text)) return null;
  const own = levelsOf(line.text);
  const path = pathAbove(doc, line.number, own);
  if (!path) return null;
  const part = marksBefore(doc, line.number);
  const from = line.from + own.column;
  if (own.key && pos >= from && pos <= from + own.key.length)
    return { part, from, to: from + own.key.length, path: [...path, own.key] };
  const start = own.key ? [...path, own.key] : path;
  const { keys } = flowOf(line.text.slice(own.rest), line.from + own.rest);
  const found = keys.find((key) => pos >= key.from && pos <= key.to);
  return found ? { part, ...found, path: [...start, ...found.path] } : null;
}

// The keys that the mapping around a line has already, but for the line itself.
export function siblingsOf(doc, number, column) {
  const found = new Set();
  for (const step of [-1, 1])
    for (let each = number + step; each > 0 && each <= doc.lines; each += step) {
      const { text } = doc.line(each);
      if (isBlank(text)) continue;
      const line = levelsOf(text);
      if (MARK.test(text) || (line.levels[0]?.column ?? line.column) < column && line.column !== column) break;
      if (line.column === column && line.key) found.add(line.key);
      if (line.levels.some((level) => level.column < column)) break;
    }
  return found;
}
