// Small manners of forms: selects that submit at once, forms that can be sent only once.
document.addEventListener("change", (event) => {
  const select = event.target.closest("[data-submits]");
  if (select) select.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-once]");
  if (!form) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});

// Back to this page from the browser's cache: the form may be sent again.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-sent]")) delete form.dataset.sent;
});
