// A progress bar that takes its time arrives in pieces, each of which draws over the one before it.
// What was drawn over is not shown, as on a terminal; its lines and numbers stay.

// `open`: source -> its last piece so far, while its line goes on.
export function hideOverdrawn(lines, elements, open) {
  lines.forEach((line, index) => {
    const element = elements[index];
    const { source } = element.dataset;
    const before = open.get(source);
    if (before && (before.returns || line.text.startsWith("\r"))) before.element.classList.add("overdrawn");
    if (line.more) open.set(source, { element, returns: line.text.endsWith("\r") });
    else open.delete(source);
  });
}
