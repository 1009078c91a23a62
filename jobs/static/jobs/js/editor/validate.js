// Sends the text of the editor to be checked, a moment after the last key, and lists what is
// wrong. The server checks again on submit: this only reports earlier.
import { LOST, isLost } from "./lost_rights.js";
import { codeSpans, element } from "./prose.js";

const PAUSE_MS = 350;
const RETRY_MS = 3000;

// The same markup as templates/jobs/_problems.html.
function problem(error) {
  const button = element("button");
  button.type = "button";
  button.dataset.line = error.line ?? "";
  button.dataset.path = error.path;
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

// What the server wrote into the page.
function errorsIn(verdict) {
  return [...verdict.querySelectorAll(".problems button")].map((button) => ({
    line: Number(button.dataset.line) || null,
    column: Number(button.dataset.column) || null,
    end_column: Number(button.dataset.endColumn) || null,
    path: button.dataset.path,
    message: button.querySelector(".line + span").textContent,
  }));
}

function show(verdict, answer, praise) {
  const count = answer.errors.length;
  if (answer.valid) {
    const { ready, more = "", problem } = praise(answer);
    if (problem) verdict.replaceChildren(element("span", "bad", problem));
    else verdict.replaceChildren(element("span", "ok", `✓ ${ready}`), ` ${more}`);
    return;
  }
  const list = element("ul", "problems");
  list.append(...answer.errors.map(problem));
  verdict.replaceChildren(element("span", "bad", `${count} problem${count > 1 ? "s" : ""}`), list);
}

// `praise`: from the server's answer to a valid text, what it is `ready` for and `more` about it; or
// the `problem` that the form itself has with it.
export function bindValidation(form, editor, praise) {
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
      if (isLost(response.status)) {
        verdict.replaceChildren(element("span", "bad", LOST), ` ${answer.detail ?? ""}`);
        return;
      }
      if (!response.ok) throw new Error(answer.detail ?? answer.title);
      show(verdict, answer, praise);
      editor.mark(answer.errors);
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
  if (verdict.querySelector(".problems")) editor.mark(errorsIn(verdict));
  else if (editor.area.value.trim()) check();
}
