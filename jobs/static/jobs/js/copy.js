// Copy buttons: data-copy names the element whose text goes to the clipboard.
const SHOWN_MS = 1600;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const copied = await copyText(source);
  const label = button.querySelector("span") ?? button;
  const before = (label.dataset.before ??= label.textContent);
  label.textContent = copied ? "Copied" : "Press Ctrl+C";
  setTimeout(() => (label.textContent = before), SHOWN_MS);
});

// The clipboard needs https or localhost; elsewhere the text is selected for the user to copy.
async function copyText(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return false;
  }
}
