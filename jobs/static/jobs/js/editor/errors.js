// The errors that the server reports, at their lines: underlined, and the numbers marked.
export function errorMarks({ GutterMarker, RangeSet, StateEffect, StateField, gutterLineClass, setDiagnostics }) {
  const marker = new (class extends GutterMarker {
    elementClass = "bad";
  })();
  const found = StateEffect.define();
  const field = StateField.define({
    create: () => RangeSet.empty,
    update(set, transaction) {
      const { newDoc } = transaction;
      let next = set.map(transaction.changes);
      for (const effect of transaction.effects)
        if (effect.is(found)) {
          const numbers = [...new Set(effect.value)].filter((each) => each <= newDoc.lines);
          next = RangeSet.of(numbers.map((each) => marker.range(newDoc.line(each).from)), true);
        }
      return next;
    },
    provide: (each) => gutterLineClass.from(each),
  });
  return {
    extension: field,
    show(view, errors) {
      const placed = errors.filter((error) => error.line);
      const { doc } = view.state;
      view.dispatch(setDiagnostics(view.state, placed.map((each) => diagnostic(doc, each))));
      view.dispatch({ effects: found.of(placed.map((error) => error.line)) });
    },
  };
}

// The server counts characters, the editor UTF-16 units.
const unitsOf = (text, column) => [...text].slice(0, column - 1).join("").length;

// What an error is about: its columns, else the key that its path names, to the end of the line.
function placeOf({ text }, error) {
  const end = text.trimEnd().length;
  if (error.column)
    return [unitsOf(text, error.column), error.end_column ? unitsOf(text, error.end_column) : end];
  const key = (error.path ?? "").split(".").at(-1).replace(/\[\d+\]$/, "");
  const found = key ? text.indexOf(key) : -1;
  return [found >= 0 ? found : text.search(/\S|$/), end];
}

function diagnostic(doc, error) {
  const line = doc.line(Math.min(error.line, doc.lines));
  const [start, end] = placeOf(line, error);
  const isKey = error.code === "unknown_key" && error.column;
  const { suggestion } = error;
  const fix = isKey && suggestion && !suggestion.includes(".") && {
    name: `Change to ${suggestion}`,
    apply: (view, from, to) => view.dispatch({ changes: { from, to, insert: suggestion }, userEvent: "input" }),
  };
  return {
    from: line.from + start, to: line.from + Math.max(start, end), severity: "error",
    message: error.message, actions: fix ? [fix] : [],
  };
}
