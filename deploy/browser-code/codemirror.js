// What the editor uses of CodeMirror (jobs/static/jobs/js/editor), as one module.
import { StyleModule } from "style-mod";

export { acceptCompletion, autocompletion, completionStatus } from "@codemirror/autocomplete";
export {
  defaultKeymap, history, historyKeymap, indentLess, indentMore, isolateHistory,
} from "@codemirror/commands";
export { yaml } from "@codemirror/lang-yaml";
export { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { lintKeymap, setDiagnostics } from "@codemirror/lint";
export { unifiedMergeView } from "@codemirror/merge";
export { Compartment, EditorState, Prec, RangeSet, StateEffect, StateField } from "@codemirror/state";
export {
  EditorView, GutterMarker, gutterLineClass, hoverTooltip, keymap, lineNumbers,
} from "@codemirror/view";
export { tags } from "@lezer/highlight";

// The content security policy refuses style elements; sheets that a script makes are allowed.
const sheet = new CSSStyleSheet();
const mounted = new Set();
StyleModule.mount = (root, modules) => {
  const wanted = [modules].flat();
  if (!document.adoptedStyleSheets.includes(sheet)) document.adoptedStyleSheets.push(sheet);
  if (wanted.every((each) => mounted.has(each))) return;
  const order = [...wanted, ...[...mounted].filter((each) => !wanted.includes(each))];
  mounted.clear();
  order.forEach((each) => mounted.add(each));
  sheet.replaceSync(order.map((each) => each.getRules()).join("\n"));
};
