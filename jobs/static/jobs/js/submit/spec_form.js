// The form beside the editor. Both show the same text: a changed field is written into the YAML by
// the server, which keeps comments, and typing in the editor fills the fields.
const PAUSE_MS = 400;

// `sender` is the form that submits or plans the text: it waits for changes under way.
export function bindSpecForm(form, editor, sender) {
  const note = form.querySelector("[role=status]");
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const fields = [...form.querySelectorAll("[data-path]")];
  let timer = 0;
  // One request at a time: each change is made in the text that the one before left.
  let work = Promise.resolve();
  let unwritten = 0;

  function show(values) {
    for (const field of fields)
      if (field !== document.activeElement) field.value = values[field.dataset.path] ?? "";
  }

  // Whether the change was made.
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
      if (answer.problem) return false;
      // What was typed meanwhile is newer than this answer.
      if (editor.area.value === source) editor.change(answer.source);
      show(answer.values);
      return true;
    } catch {
      note.textContent = "The form is not available now. The editor still works.";
      return false;
    }
  }

  function later(change) {
    work = work.then(() => send(change));
    return work;
  }

  function whenWritten(event, goOn) {
    if (!unwritten) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    work.then((made) => made && goOn());
  }

  for (const field of fields)
    field.addEventListener("change", () => {
      clearTimeout(timer);
      unwritten += 1;
      later({ path: field.dataset.path, value: field.value }).then(() => (unwritten -= 1));
    });
  const submit = (event) => whenWritten(event, () => sender.requestSubmit(event.submitter));
  sender.addEventListener("submit", submit, true);
  sender.addEventListener("htmx:confirm", (event) =>
    whenWritten(event, () => event.detail.issueRequest(true)));
  form.addEventListener("submit", (event) => event.preventDefault());
  editor.area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => later({}), PAUSE_MS);
  });
  later({});
  return later;
}
