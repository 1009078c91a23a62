// Sends the text of the editor to be checked, a moment after the last key, and lists what is
// wrong. The server checks again on submit: this only reports earlier.
const PAUSE_MS = 350;
const RETRY_MS = 3000;

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A sentence with its backquoted parts set as code.
function codeSpans(text) {
  const made = element("span");
  text.split(/`([^`\n]+)`/).forEach((part, i) => made.append(i % 2 ? element("code", "", part) : part));
  return made;
}

// The same markup as templates/jobs/_problems.html.
function problem(error) {
  const button = element("button");
  button.type = "button";
  button.dataset.line = error.line ?? "";
  button.append(
    element("span", "line", error.line ? `Line ${error.line}` : error.path || "Job"),
    codeSpans(error.message),
  );
  if (error.suggestion && !error.message.includes(error.suggestion)) {
    const tip = element("span", "tip", "Did you mean ");
    tip.append(element("code", "", error.suggestion), "?");
    button.append(tip);
  }
  const item = element("li");
  item.append(button);
  return item;
}

function show(verdict, answer) {
  const count = answer.errors.length;
  if (answer.valid) {
    verdict.replaceChildren(element("span", "ok", "✓ Ready to submit"), ` ${summary(answer.spec)}`);
    return;
  }
  const list = element("ul", "problems");
  list.append(...answer.errors.map(problem));
  verdict.replaceChildren(element("span", "bad", `${count} problem${count > 1 ? "s" : ""}`), list);
}

function summary(spec) {
  const nodes = spec?.num_nodes ?? 1;
  const meshes = Object.entries(spec?.portal?.meshes ?? {}).map(([name, size]) => `${name} ${size}`);
  const kind = meshes.length ? `Monarch job, meshes: ${meshes.join(", ")}` : "multi-node job";
  return `${nodes} node${nodes > 1 ? "s" : ""}, ${kind}`;
}

export function bindValidation(form, editor) {
  const verdict = document.getElementById("verdict");
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  let timer = 0;
  let asked = null;

  async function check() {
    asked?.abort();
    asked = new AbortController();
    try {
      const response = await fetch(form.dataset.validate, {
        method: "POST",
        headers: { "Content-Type": "application/yaml", "X-CSRFToken": token },
        body: editor.area.value,
        signal: asked.signal,
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.detail ?? answer.title);
      show(verdict, answer);
      editor.markBad(answer.errors.map((error) => error.line).filter(Boolean));
    } catch (error) {
      if (error.name === "AbortError") return;
      // "Failed to fetch" does not help a user without a network.
      if (error instanceof TypeError) error.message = "the portal can't be reached. It is tried again.";
      verdict.replaceChildren(element("span", "muted", `Check failed: ${error.message}`));
      clearTimeout(timer);
      timer = setTimeout(check, RETRY_MS);
    }
  }

  function forget() {
    clearTimeout(timer);
    asked?.abort();
  }

  editor.area.addEventListener("input", () => {
    forget();
    // Never show unchecked text as valid. A list of problems stays: a user who fixes them one by
    // one reads it meanwhile.
    if (verdict.querySelector(".ok")) verdict.replaceChildren(element("span", "muted", "Checking …"));
    timer = setTimeout(check, PAUSE_MS);
  });
  form.addEventListener("submit", forget);
  verdict.addEventListener("click", (event) => {
    const line = Number(event.target.closest("[data-line]")?.dataset.line);
    if (line) editor.showLine(line);
  });
  // What the server has already said about this very text stays.
  if (!verdict.querySelector(".problems") && editor.area.value.trim()) check();
}
