// Small manners of forms: selects that submit at once, forms that can be sent only once.
document.addEventListener("change", (event) => {
  const select = event.target.closest("[data-submits]");
  if (select) select.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-once]");
  // A form that asks first is sent only after yes.
  if (!form || event.defaultPrevented) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});

// Back to this page from the browser's cache: the form may be sent again.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-sent]")) delete form.dataset.sent;
});

// What was left empty does not belong into the address.
document.addEventListener("htmx:configRequest", (event) => {
  const { parameters, verb } = event.detail;
  if (verb === "get") for (const name of Object.keys(parameters)) if (parameters[name] === "") delete parameters[name];
});
