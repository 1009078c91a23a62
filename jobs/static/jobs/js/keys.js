// Keys of a page, while no text is entered and no dialog is open. `?` lists them.
const WRITING = "input, textarea, select, [contenteditable]";

// `actions`: key -> what it does, while `panel` is shown; false: the key is left to others.
export function bindKeys(panel, actions) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (panel.hidden || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.(WRITING)) return;
    const action = actions[event.key];
    if (action && action() !== false) event.preventDefault();
  });
}

function focusSearch() {
  const fields = [...document.querySelectorAll("main input[type=search]")];
  const field = fields.find((each) => each.checkVisibility());
  if (!field) return false;
  field.focus();
  field.select();
}

// The log has a list of its own.
function showKeys() {
  if (document.querySelector("[data-log]:not([hidden])")) return false;
  document.getElementById("page-keys")?.showModal();
}

bindKeys(document.body, { "/": focusSearch, "?": showKeys });
