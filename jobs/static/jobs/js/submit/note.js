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

function button(label, className, pressed) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", className: `button small ${className}`, textContent: label });
  made.addEventListener("click", pressed);
  return made;
}
