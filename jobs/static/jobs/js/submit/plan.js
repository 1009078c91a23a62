import { LOST, isLost } from "../editor/lost_rights.js";

// A plan is of the text that it was made for: once that changes it says nothing any more.
export function bindPlan(plan, editor) {
  editor.area.addEventListener("input", () => plan.replaceChildren());
  const form = plan.closest("form");
  form.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, pathInfo } = event.detail;
    if (!isLost(xhr.status, new URL(xhr.responseURL).pathname !== pathInfo.requestPath)) return;
    event.detail.shouldSwap = false;
    plan.textContent = LOST;
  });
  // What htmx puts there says itself when something is wrong; when nothing comes, this does.
  for (const name of ["htmx:sendError", "htmx:responseError"])
    form.addEventListener(name, ({ detail }) => {
      if (!isLost(detail.xhr.status)) plan.textContent = "The launch plan is not available now. Try again in a moment.";
    });
}
