// The form beside the editor. Both show the same text: a changed field is written into the YAML by
// the server, which keeps comments, and typing in the editor fills the fields.
const PAUSE_MS = 400;

export function bindSpecForm(form, editor) {
  const note = form.querySelector("[role=status]");
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const fields = [...form.querySelectorAll("[data-path]")];
  let timer = 0;
  // One request at a time: each change is made in the text that the one before left.
  let work = Promise.resolve();

  function show(values) {
    for (const field of fields)
      if (field !== document.activeElement) field.value = values[field.dataset.path] ?? "";
  }

  async function send(change) {
    const source = editor.area.value;
    try {
      const response = await fetch(form.dataset.edit, {
        method: "POST",
        headers: { "X-CSRFToken": token },
        body: new URLSearchParams({ source, ...change }),
      });
      if (!response.ok) throw new Error();
      const answer = await response.json();
      note.textContent = answer.problem ?? "";
      if (answer.problem) return;
      // What was typed meanwhile is newer than this answer.
      if (editor.area.value === source) editor.change(answer.source);
      show(answer.values);
    } catch {
      note.textContent = "The form is not available now. The editor still works.";
    }
  }

  function later(change) {
    work = work.then(() => send(change));
  }

  for (const field of fields)
    field.addEventListener("change", () => {
      clearTimeout(timer);
      later({ path: field.dataset.path, value: field.value });
    });
  form.addEventListener("submit", (event) => event.preventDefault());
  editor.area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => later({}), PAUSE_MS);
  });
  later({});
  return later;
}
