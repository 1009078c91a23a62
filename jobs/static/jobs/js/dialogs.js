// Buttons that open and close a <dialog>. The buttons may come and go with live parts.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens).showModal();
  const closer = event.target.closest("[data-closes]");
  if (closer) closer.closest("dialog").close();
  // The dialog itself is hit only where its content is not: on the backdrop.
  if (event.target.matches("dialog") && outside(event.target, event)) event.target.close();
});

function outside(dialog, event) {
  const box = dialog.getBoundingClientRect();
  const across = event.clientX < box.left || event.clientX > box.right;
  return across || event.clientY < box.top || event.clientY > box.bottom;
}
