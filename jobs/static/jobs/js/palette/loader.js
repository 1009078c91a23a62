// Opens the command palette; its code and its entries are loaded when it is first opened.
import { report } from "../connection.js";

const button = document.querySelector("[data-palette]");

async function open() {
  try {
    const { openPalette } = await import("./palette.js");
    await openPalette(button.dataset.palette);
    report("palette", false);
  } catch {
    report("palette", true);
  }
}

document.addEventListener("keydown", (event) => {
  // An event of the browser's own form filling has no key.
  const isKey = event.key?.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
  if (!button || !isKey || event.shiftKey || event.altKey || event.defaultPrevented) return;
  // A shell uses the key itself, and another dialog comes first.
  if (event.target.closest?.("#terminal")) return;
  if (document.querySelector("dialog[open]:not(#palette)")) return;
  event.preventDefault();
  open();
});

if (button) {
  button.hidden = false;
  button.addEventListener("click", open);
}
