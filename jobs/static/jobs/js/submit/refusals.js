// Fields of the form whose value could not be written into the text: marked, with the reason below.
// `restore` brings back what the text has for a field, for "Discard".
export function bindRefusals(restore) {
  const refused = new Map();

  const aboutOf = (field) => field.dataset.about ?? `${field.id}-about`;

  function clear(field) {
    refused.get(field)?.remove();
    if (!refused.delete(field)) return;
    field.removeAttribute("aria-invalid");
    field.setAttribute("aria-describedby", aboutOf(field));
  }

  function messageOf(field, problem) {
    const message = document.createElement("div");
    Object.assign(message, { className: "error", id: `${field.id}-problem`, textContent: problem });
    message.setAttribute("role", "alert");
    const discard = document.createElement("button");
    Object.assign(discard, { type: "button", className: "button small quiet", textContent: "Discard" });
    discard.addEventListener("click", () => {
      clear(field);
      restore(field);
      field.focus();
    });
    message.append(" ", discard);
    return message;
  }

  return {
    clear,
    has: (field) => refused.has(field),
    fields: () => [...refused.keys()],
    mark(field, problem) {
      clear(field);
      const message = messageOf(field, problem);
      (field.closest(".entry-row")?.lastElementChild ?? field).after(message);
      refused.set(field, message);
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", `${message.id} ${aboutOf(field)}`);
    },
    // Whether there is one. It is shown also in a group that is closed.
    focusFirst() {
      const follows = (one, other) => (one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
      const [first] = [...refused.keys()].sort(follows);
      if (!first) return false;
      first.closest("details").open = true;
      first.focus();
      return true;
    },
  };
}
