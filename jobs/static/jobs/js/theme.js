// Switches the theme without a page load. The cookie is what the server writes into the page.
const YEAR_S = 365 * 24 * 3600;

function apply(form, theme) {
  document.cookie = `theme=${theme}; path=/; max-age=${YEAR_S}; samesite=lax`;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const button of form.querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(button.value === theme));
}

for (const form of document.querySelectorAll("[data-theme-form]"))
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply(form, event.submitter.value);
  });
