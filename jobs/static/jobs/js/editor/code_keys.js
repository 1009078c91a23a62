// Keys of the code editor, and what is typed over a selection.
import { indentationAfter } from "./area.js";

// Over a selection a browser inserts text with the style of what it replaces, which the content
// security policy forbids.
function insertPlain(event, view) {
  const { data, inputType } = event;
  const isSimple = view.state.selection.main.empty && !data?.includes("\n");
  if (inputType !== "insertText" || !data || view.composing || isSimple) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

// Tab indents once something was typed or clicked; until then, and after Escape, it leaves.
export function keysOf(library, area) {
  const { EditorView, Prec, acceptCompletion, completionStatus, indentLess, indentMore, keymap } = library;
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
  // While a list of completions is shown, Escape only closes it.
  const leave = (view) => {
    if (completionStatus(view.state) !== "active") view.setTabFocusMode(true);
    return false;
  };
  return [
    Prec.highest(keymap.of([
      { key: "Mod-Enter", run: send },
      { key: "Tab", run: acceptCompletion },
      { key: "Escape", run: leave },
    ])),
    keymap.of([
      { key: "Enter", run: newLine },
      { key: "Tab", run: indentMore, shift: indentLess },
      ...library.lintKeymap,
      ...library.historyKeymap,
      ...library.defaultKeymap,
    ]),
    EditorView.domEventHandlers({
      focus: (_, view) => void view.setTabFocusMode(true),
      beforeinput: insertPlain,
      pointerdown: (_, view) => void setTimeout(() => view.setTabFocusMode(false)),
    }),
    EditorView.updateListener.of((update) => {
      if (update.transactions.some((each) => each.isUserEvent("input"))) update.view.setTabFocusMode(false);
    }),
  ];
}
