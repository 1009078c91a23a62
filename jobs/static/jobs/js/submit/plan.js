// A plan is of the text that it was made for: once that changes it says nothing any more.
export function bindPlan(plan, editor) {
  editor.area.addEventListener("input", () => plan.replaceChildren());
  // What htmx puts there says itself when something is wrong; when nothing comes, this does.
  for (const name of ["htmx:sendError", "htmx:responseError"])
    plan.closest("form").addEventListener(name, () => {
      plan.textContent = "The launch plan is not available now. Try again in a moment.";
    });
}
