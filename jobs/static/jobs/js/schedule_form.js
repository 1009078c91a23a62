// Puts what the preview of a schedule's times finds wrong below the field that it is about.
const FIELDS = ["id_cron", "id_zone"];
const preview = document.getElementById("schedule-times");

function showProblem() {
  const problem = preview.querySelector("[data-field]");
  for (const id of FIELDS) {
    const input = document.getElementById(id);
    const isWrong = problem?.dataset.field === id;
    // What follows an empty or a wrong field was not checked: the server's own error of it stays.
    if (!isWrong && !input.value.trim()) break;
    const field = input.closest(".field");
    field.querySelectorAll(".error").forEach((error) => error.remove());
    if (isWrong) {
      problem.id = `${id}_error`;
      field.append(problem);
    }
    input.setAttribute("aria-invalid", String(isWrong));
    input.setAttribute("aria-describedby", `${id}_helptext${isWrong ? ` ${id}_error` : ""}`);
    if (isWrong) break;
  }
}

preview?.addEventListener("htmx:afterSettle", showProblem);
