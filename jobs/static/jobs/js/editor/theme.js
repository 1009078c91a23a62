// The looks of the code editor, from the tokens of base.css: one theme, light and dark.
const SURFACE = {
  backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line-strong)",
  borderRadius: "6px", boxShadow: "var(--shadow-2)",
};

export function lookOf({ EditorView, HighlightStyle, syntaxHighlighting, tags }) {
  const colors = HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--link)" },
    { tag: [tags.comment, tags.lineComment], color: "var(--ink-2)", fontStyle: "italic" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--green)" },
    { tag: [tags.keyword, tags.meta, tags.labelName, tags.typeName], color: "var(--amber)" },
    { tag: [tags.separator, tags.punctuation], color: "var(--ink-2)" },
  ]);
  const theme = EditorView.theme({
    "&": { backgroundColor: "var(--log-bg)", color: "var(--log-ink)", font: "inherit" },
    "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
    ".cm-scroller": { font: "inherit", overflow: "auto" },
    ".cm-content": { padding: "12px 0", caretColor: "var(--ink)" },
    ".cm-line": { padding: "0 14px" },
    ".cm-gutters": { backgroundColor: "transparent", color: "var(--ink-2)", border: "0", borderRight: "1px solid var(--line)" },
    ".cm-lineNumbers .cm-gutterElement": { padding: "0 10px 0 14px" },
    ".cm-gutterElement.bad": { backgroundColor: "var(--red)", color: "var(--panel)", fontWeight: "700" },
    ".cm-tooltip": SURFACE,
    ".cm-tooltip.cm-tooltip-autocomplete > ul": { font: ".93rem/1.55 var(--mono)", maxHeight: "14em" },
    ".cm-tooltip-autocomplete ul li": { padding: "2px 8px" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--blue-bg)", color: "var(--ink)" },
    ".cm-completionMatchedText": { color: "var(--link)", textDecoration: "none", fontWeight: "700" },
    ".cm-completionDetail": { color: "var(--ink-2)", fontStyle: "normal", fontFamily: "var(--sans)" },
    ".cm-tooltip.cm-completionInfo": { ...SURFACE, padding: "0" },
    ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--sans)" },
    ".cm-diagnostic-error": { borderLeft: "4px solid var(--red)" },
    ".cm-diagnosticAction": { backgroundColor: "var(--panel)", color: "var(--link)", border: "1px solid var(--line-strong)", font: "inherit", cursor: "pointer" },
    ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--red)", textUnderlineOffset: "3px" },
    ".cm-changedLine, &.cm-merge-b .cm-changedLine": { backgroundColor: "var(--green-bg)" },
    ".cm-changedText, &.cm-merge-b .cm-changedText": { background: "none", textDecoration: "underline var(--green)" },
    ".cm-deletedChunk, .cm-deletedChunk .cm-deletedLine": { backgroundColor: "var(--red-bg)", color: "var(--ink)", paddingLeft: "14px" },
    ".cm-deletedChunk .cm-deletedLine": { paddingLeft: "0", textDecoration: "none" },
    ".cm-deletedLine del": { textDecoration: "none" },
    ".cm-changeGutter": { width: "3px", paddingLeft: "0" },
    ".cm-changedLineGutter": { backgroundColor: "var(--green)" },
    ".cm-deletedLineGutter": { backgroundColor: "var(--red)" },
  });
  return [theme, syntaxHighlighting(colors)];
}
