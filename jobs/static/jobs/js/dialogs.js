// Buttons that open and close a <dialog>. The buttons may come and go with live parts, so what
// follows from yes (data-consequence) and the text of no (data-keep) are theirs.
const REFUSED = 422;

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) open(document.getElementById(opener.dataset.opens), opener.dataset);
  const closer = event.target.closest("[data-closes]");
  if (closer) closer.closest("dialog").close();
  // The dialog itself is hit only where its content is not: on the backdrop.
  if (event.target.matches("dialog") && outside(event.target, event)) event.target.close();
});

// A form that asks first: data-asks is the question, data-consequence what follows from yes,
// data-yes the text of the button.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-asks]");
  if (!form || form.dataset.sure) return;
  event.preventDefault();
  const dialog = document.getElementById("ask-dialog");
  document.getElementById("ask-title").textContent = form.dataset.asks;
  document.getElementById("ask-words").textContent = form.dataset.consequence;
  const yes = document.getElementById("ask-yes");
  yes.textContent = form.dataset.yes;
  // Does nothing more if the form has gone meanwhile, as its action has.
  yes.onclick = () => {
    dialog.close();
    form.dataset.sure = "yes";
    form.requestSubmit();
    delete form.dataset.sure;
  };
  dialog.showModal();
});

// A form in a dialog that stays open with the errors of what was sent: the answer to a form that
// is refused is the form itself, with them. Any other answer is shown by the page.
document.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-in-dialog]");
  if (!form) return;
  event.preventDefault();
  if (form.dataset.sent) return;
  form.dataset.sent = "yes";
  const unsent = form.querySelector("[data-unsent]");
  unsent.hidden = true;
  try {
    const sent = { method: "POST", body: new FormData(form), redirect: "manual" };
    const answer = await fetch(form.action, sent);
    if (answer.type === "opaqueredirect") location.reload();
    else if (answer.status === REFUSED) showAgain(form, await answer.text());
    else form.submit();
  } catch {
    unsent.hidden = false;
    delete form.dataset.sent;
  }
});

function showAgain(form, html) {
  const dialog = form.closest("dialog");
  form.outerHTML = html;
  dialog.querySelector("[aria-invalid]")?.focus();
}

function open(dialog, { consequence, keep }) {
  if (consequence) dialog.querySelector("[data-says]").textContent = consequence;
  if (keep) dialog.querySelector("[data-closes]").textContent = keep;
  dialog.showModal();
}

function outside(dialog, event) {
  const box = dialog.getBoundingClientRect();
  const across = event.clientX < box.left || event.clientX > box.right;
  return across || event.clientY < box.top || event.clientY > box.bottom;
}
