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

// An error of the server at the key that it names, and to the end of its line.
function diagnostic(doc, error) {
  const line = doc.line(Math.min(error.line, doc.lines));
  const key = (error.path ?? "").split(".").at(-1).replace(/\[\d+\]$/, "");
  const found = key ? line.text.indexOf(key) : -1;
  const start = found >= 0 ? found : line.text.search(/\S|$/);
  const isKey = error.code === "unknown_key" && found >= 0;
  const end = isKey ? start + key.length : line.text.trimEnd().length;
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
