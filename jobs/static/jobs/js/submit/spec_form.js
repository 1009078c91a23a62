// The form beside the editor. Both show the same text: a changed field is written into the YAML by
// the server, which keeps comments, and typing in the editor fills the fields. A value that cannot be
// written stays in its field, and nothing is submitted or planned without it.
import { LOST, isLost } from "../editor/lost_rights.js";
import { bindRefusals } from "./refusals.js";
import { bindRows } from "./rows.js";

const PAUSE_MS = 400;

// `sender` is the form that submits or plans the text: it waits for changes under way.
export function bindSpecForm(form, editor, sender) {
  const note = form.querySelector("[role=status]");
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const fields = [...form.querySelectorAll("[data-path]:not(.entries-field)")];
  const boxes = [...form.querySelectorAll(".entries-field")].map((box) => bindRows(box, write));
  let timer = 0;
  // One request at a time: each change is made in the text that the one before left.
  let work = Promise.resolve();
  let unwritten = 0;
  let shown = {};
  const refusals = bindRefusals(discard);
  // The fields whose change waits to be sent.
  const waiting = new Map();
  const isKept = (field) => field === document.activeElement || waiting.has(field) || refusals.has(field);

  function show(values) {
    shown = values;
    for (const field of fields)
      if (!isKept(field)) field.value = values[field.dataset.path] ?? "";
    for (const box of boxes) box.show(values[box.path] ?? [], isKept);
  }

  const boxOf = (field) => boxes.find((box) => box.owns(field));
  const changeOf = (field) => {
    const box = boxOf(field);
    return box ? box.changeOf(field) : { path: field.dataset.path, value: field.value };
  };

  // Brings back what the text has for a field.
  function discard(field) {
    const box = boxOf(field);
    if (box) box.discard(field);
    else field.value = shown[field.dataset.path] ?? "";
  }

  // Returns why the change was not made; "" if it was.
  async function send(change, field) {
    const source = editor.area.value;
    try {
      const response = await fetch(form.dataset.edit, {
        method: "POST",
        headers: { "X-CSRFToken": token },
        body: new URLSearchParams({ source, ...change }),
      });
      if (isLost(response.status, response.redirected)) return (note.textContent = LOST);
      if (!response.ok) throw new Error();
      const answer = await response.json();
      if (answer.problem && change.path) return answer.problem;
      note.textContent = answer.problem ?? "";
      // Its fields show an earlier text then.
      form.classList.toggle("off", Boolean(answer.problem));
      if (answer.problem) return answer.problem;
      // What was typed meanwhile is newer than this answer.
      if (editor.area.value === source) editor.change(answer.source);
      if (field) accept(field, change);
      show(answer.values);
      return "";
    } catch {
      note.textContent = "The form is not available now. The editor still works.";
      return note.textContent;
    }
  }

  function accept(field, change) {
    refusals.clear(field);
    boxOf(field)?.accept(field, change);
  }

  function later(change) {
    work = work.then(() => send(change));
    return work;
  }

  function write(field) {
    clearTimeout(timer);
    const change = changeOf(field);
    // A row that was emptied, or half of a new one.
    if (!change) return refusals.clear(field);
    unwritten += 1;
    waiting.set(field, (waiting.get(field) ?? 0) + 1);
    work = work.then(() => sendOf(field, change));
  }

  async function sendOf(field, change) {
    const box = boxOf(field);
    waiting.set(field, waiting.get(field) - 1);
    if (!waiting.get(field)) waiting.delete(field);
    const problem = await send({ ...change, ...box?.rowOf(field) }, field);
    unwritten -= 1;
    if (problem) refusals.mark(field, problem);
    box?.release();
  }

  // What kept a value from being written, such as an error of the text, may be fixed since.
  function whenWritten(event, goOn) {
    refusals.fields().forEach(write);
    const half = boxes.map((box) => box.incomplete()).find(Boolean);
    if (half) refusals.mark(half, "Complete this row, or empty it.");
    if (!unwritten && !half) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    work.then(() => refusals.focusFirst() || goOn());
  }

  for (const field of fields) field.addEventListener("change", () => write(field));
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
