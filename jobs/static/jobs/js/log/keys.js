// Keys for the log, while it is shown and no text is entered. `?` lists them.
const WRITING = "input, textarea, select, [contenteditable]";

// `actions`: key -> what it does.
export function bindKeys(panel, actions) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (panel.hidden || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.(WRITING)) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
