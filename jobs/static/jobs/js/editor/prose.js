// Elements and sentences of the editor.
export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A sentence with its backquoted parts set as code.
export function codeSpans(text) {
  const made = element("span");
  text.split(/`([^`\n]+)`/).forEach((part, i) => made.append(i % 2 ? element("code", "", part) : part));
  return made;
}
