// Fields of the form whose value could not be written into the text: marked, with the reason below.
// `textOf` returns what the text has for a field, which comes back with "Discard".
export function bindRefusals(fields, textOf) {
  const refused = new Map();

  function clear(field) {
    refused.get(field)?.remove();
    if (!refused.delete(field)) return;
    field.removeAttribute("aria-invalid");
    field.setAttribute("aria-describedby", `${field.id}-about`);
  }

  function messageOf(field, problem) {
    const message = document.createElement("div");
    Object.assign(message, { className: "error", id: `${field.id}-problem`, textContent: problem });
    message.setAttribute("role", "alert");
    const discard = document.createElement("button");
    Object.assign(discard, { type: "button", className: "button small quiet", textContent: "Discard" });
    discard.addEventListener("click", () => {
      clear(field);
      field.value = textOf(field);
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
      field.after(message);
      refused.set(field, message);
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", `${message.id} ${field.id}-about`);
    },
    // Whether there is one. It is shown also in a group that is closed.
    focusFirst() {
      const first = fields.find((each) => refused.has(each));
      if (!first) return false;
      first.closest("details").open = true;
      first.focus();
      return true;
    },
  };
}
