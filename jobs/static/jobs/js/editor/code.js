// CodeMirror in place of the text area, which stays the field that is sent: every change is written
// into it. `library` is the module that deploy/install-browser-code bundles.
import { differenceOf, indentationAfter } from "./area.js";
import { lookOf } from "./theme.js";
import { wordsOf } from "./words.js";

export function openCode(library, frame, area) {
  const { Compartment, EditorState, EditorView } = library;
  const words = wordsOf(frame.dataset.words, frame.dataset.kind === "template");
  const marks = badLines(library);
  const changes = new Compartment();
  const view = new EditorView({
    state: EditorState.create({
      doc: area.value,
      selection: { anchor: area.selectionStart, head: area.selectionEnd },
      extensions: [
        keysOf(library, area),
        library.history(),
        library.lineNumbers(),
        library.yaml(),
        library.indentUnit.of("  "),
        library.autocompletion({
          override: [words.complete],
          icons: false,
          activateOnCompletion: ({ apply }) => apply?.endsWith(": "),
        }),
        library.hoverTooltip(words.explain),
        marks.extension,
        lookOf(library),
        changes.of([]),
        attributes(library, area),
        EditorView.updateListener.of((update) => update.docChanged && write(update.state.doc)),
      ],
    }),
  });

  function write(doc) {
    area.value = doc.toString();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  takePlace(view, frame, area);
  words.load();
  if (frame.dataset.original) showChanges(library, view, changes, frame.dataset.original);
  return {
    mark(errors) {
      const found = errors.filter((error) => error.line);
      view.dispatch(library.setDiagnostics(view.state, found.map((each) => diagnostic(view.state.doc, each))));
      view.dispatch({ effects: marks.set(found.map((error) => error.line)) });
    },
    replace(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
      view.focus();
    },
    change(text) {
      const difference = differenceOf(view.state.doc.toString(), text);
      if (difference.insert || difference.to > difference.from) view.dispatch({ changes: difference });
    },
    showLine(number) {
      const line = view.state.doc.line(Math.min(number, view.state.doc.lines));
      const effects = EditorView.scrollIntoView(line.from, { y: "center" });
      view.dispatch({ selection: { anchor: line.from, head: line.to }, effects });
      view.focus();
    },
  };
}

function takePlace(view, frame, area) {
  const hadFocus = document.activeElement === area;
  const top = area.scrollTop;
  frame.classList.add("code");
  frame.append(view.dom);
  area.hidden = true;
  // A field that is not shown can neither be named nor complain to the browser.
  area.removeAttribute("aria-label");
  area.required = false;
  frame.querySelector(".gutter").hidden = true;
  view.scrollDOM.scrollTop = top;
  if (hadFocus) view.focus();
}

function attributes({ EditorView }, area) {
  return EditorView.contentAttributes.of({
    "aria-label": area.getAttribute("aria-label"),
    "aria-describedby": area.getAttribute("aria-describedby"),
    autocapitalize: "off",
    // A browser needs no number to focus it; some that check pages do.
    tabindex: "0",
  });
}

// Tab indents once something was typed or clicked; until then, and after Escape, it leaves.
function keysOf(library, area) {
  const { EditorView, Prec, acceptCompletion, indentLess, indentMore, keymap } = library;
  const send = () => {
    area.form.requestSubmit();
    return true;
  };
  const newLine = (view) => {
    const { from } = view.state.selection.main;
    const line = view.state.doc.lineAt(from);
    const insert = `\n${indentationAfter(view.state.sliceDoc(line.from, from))}`;
    view.dispatch(view.state.replaceSelection(insert), { scrollIntoView: true, userEvent: "input" });
    return true;
  };
  const leave = (view) => {
    view.setTabFocusMode(true);
    return false;
  };
  return [
    Prec.highest(keymap.of([{ key: "Mod-Enter", run: send }, { key: "Tab", run: acceptCompletion }])),
    keymap.of([
      { key: "Enter", run: newLine },
      { key: "Tab", run: indentMore, shift: indentLess },
      { key: "Escape", run: leave },
      ...library.lintKeymap,
      ...library.historyKeymap,
      ...library.defaultKeymap,
    ]),
    EditorView.domEventHandlers({
      focus: (_, view) => void view.setTabFocusMode(true),
      pointerdown: (_, view) => void setTimeout(() => view.setTabFocusMode(false)),
    }),
    EditorView.updateListener.of((update) => {
      if (update.transactions.some((each) => each.isUserEvent("input"))) update.view.setTabFocusMode(false);
    }),
  ];
}

// The numbers of lines with errors.
function badLines({ GutterMarker, RangeSet, StateEffect, StateField, gutterLineClass }) {
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
  return { extension: field, set: (lines) => found.of(lines) };
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

// The differences from the text that was opened, until the button turns them off.
function showChanges({ unifiedMergeView }, view, compartment, original) {
  const button = document.getElementById("changes-button");
  const show = (isShown) => {
    button.setAttribute("aria-pressed", isShown);
    const extension = isShown ? unifiedMergeView({ original, mergeControls: false }) : [];
    view.dispatch({ effects: compartment.reconfigure(extension) });
  };
  button.hidden = false;
  button.addEventListener("click", () => show(button.getAttribute("aria-pressed") !== "true"));
  show(true);
}
