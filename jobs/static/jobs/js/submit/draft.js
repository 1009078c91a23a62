// Keeps what was typed until it has become a job: neither a reload nor a session that ended loses
// it. It lies in this tab alone, and is offered to the person who typed it only.
function stored(key, text) {
  try {
    if (text === undefined) return JSON.parse(sessionStorage.getItem(key));
    if (text === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(text));
  } catch {
    // A browser that keeps nothing still submits jobs.
  }
  return null;
}

function button(label, className, pressed) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", className: `button small ${className}`, textContent: label });
  made.addEventListener("click", pressed);
  return made;
}

function offer(form, text, { take, drop }) {
  const note = document.createElement("div");
  note.className = "note draft";
  note.setAttribute("role", "status");
  const words = document.createElement("span");
  const lines = text.trim().split("\n").length;
  words.textContent = `You typed ${lines} line${lines > 1 ? "s" : ""} here that became no job.`;
  const close = (act) => () => {
    note.remove();
    act();
  };
  note.append(words, button("Take it back", "", close(take)), button("Forget it", "quiet", close(drop)));
  form.querySelector(".editor").before(note);
}

export function bindDraft(form, editor) {
  const key = `draft:${form.dataset.draft}`;
  const { area } = editor;
  const examples = [...form.querySelectorAll("[data-yaml]")].map((one) => one.dataset.yaml);
  const isOwn = (text) => text.trim() && text !== area.defaultValue && !examples.includes(text);
  const before = stored(key)?.text;
  // What the server has just refused stands in the editor already.
  if (before && before !== area.value)
    offer(form, before, { take: () => editor.replace(before), drop: () => stored(key, null) });
  area.addEventListener("input", () => isOwn(area.value) && stored(key, { text: area.value }));
  form.addEventListener("submit", () => stored(key, { text: area.value, sent: location.pathname }));
}

// For the page of a job: what was sent from the page before this one is no draft any more.
export function forgetSent() {
  const from = document.referrer && new URL(document.referrer).pathname;
  for (const key of Object.keys(sessionStorage).filter((one) => one.startsWith("draft:")))
    if (stored(key)?.sent === from) stored(key, null);
}
