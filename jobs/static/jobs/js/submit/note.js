// A note above the editor, with a button for each of `actions`: label, class, act. Any closes it.
export function showNote(form, text, actions) {
  form.querySelector(".note.draft")?.remove();
  const note = document.createElement("div");
  note.className = "note draft";
  note.setAttribute("role", "status");
  const words = document.createElement("span");
  words.textContent = text;
  note.append(words, ...actions.map(([label, className, act]) => button(label, className, () => {
    note.remove();
    act();
  })));
  form.querySelector(".editor").before(note);
  return note;
}

// The text was replaced from `before`: one press brings that back, until something else is typed.
export function offerUndo(form, editor, before, words) {
  const undo = ["Undo", "", () => editor.replace(before)];
  const note = showNote(form, words, [undo]);
  note.scrollIntoView({ block: "nearest" });
  editor.area.addEventListener("input", () => note.remove(), { once: true });
}

function button(label, className, pressed) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", className: `button small ${className}`, textContent: label });
  made.addEventListener("click", pressed);
  return made;
}
