// CodeMirror in place of the text area, which stays the field that is sent: every change is written
// into it. `library` is the module that deploy/install-browser-code bundles.
import { differenceOf } from "./area.js";
import { keysOf } from "./code_keys.js";
import { errorMarks } from "./errors.js";
import { lookOf } from "./theme.js";
import { wordsOf } from "./words.js";

export function openCode(library, frame, area) {
  const { Compartment, EditorState, EditorView } = library;
  const words = wordsOf(frame.dataset.words, frame.dataset.kind === "template");
  const marks = errorMarks(library);
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

  // One step of the history, whatever was typed just before.
  const alone = library.isolateHistory.of("full");
  takePlace(view, frame, area);
  words.load();
  if (frame.dataset.original) showChanges(library, view, changes, frame.dataset.original);
  return {
    mark: (errors) => marks.show(view, errors),
    replace(text) {
      const changes = { from: 0, to: view.state.doc.length, insert: text };
      view.dispatch({ changes, selection: { anchor: 0 }, scrollIntoView: true, annotations: alone });
      view.focus();
    },
    change(text) {
      const difference = differenceOf(view.state.doc.toString(), text);
      if (difference.insert || difference.to > difference.from)
        view.dispatch({ changes: difference, annotations: alone });
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
